"""What a run warns of, which doesn't end it: in its status and in its details."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.workflows import details
    from perdure.workflows.state import RunState

MAX_WARNINGS = 20


def warn(state: RunState, texts: Sequence[str]) -> None:
    """Add texts to what the run warns of, each once."""
    new = [text for text in texts if state.plan and text not in state.plan.warnings]
    if state.plan and new:
        warnings = [*state.plan.warnings, *new][-MAX_WARNINGS:]
        state.plan = state.plan.model_copy(update={"warnings": warnings})
        details.show(state)
