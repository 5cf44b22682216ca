"""Which calls of a step run when. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import PlannedCall


def segments(calls: Sequence[PlannedCall]) -> list[list[PlannedCall]]:
    """Calls that may run together, in order: a sequential tool is a barrier and runs alone."""
    result: list[list[PlannedCall]] = []
    together: list[PlannedCall] = []
    for call in calls:
        if not call.options.sequential:
            together.append(call)
            continue
        if together:
            result.append(together)
            together = []
        result.append([call])
    return [*result, together] if together else result
