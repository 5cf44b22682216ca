"""Calls that need the worker which holds a session for the run: they go to that worker's own queue, and where it is
gone to any other, which is told that there was a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, TimeoutError, TimeoutType

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import CallOutcome, PlannedCall
    from perdure.workflows.state import RunState

TAKEN_WITHIN = 10.0
"""Seconds that the worker with the session has to take a call. One that is gone takes none."""

Schedule = Callable[[PlannedCall, bool], Awaitable[Any]]
"""Schedules a call; the flag says that the run had a session."""


async def scheduled(state: RunState, call: PlannedCall, schedule: Schedule) -> Any:
    """Run a call where its session is. One that nobody took there never began, so it is sent to any worker."""
    queue = state.bound.get(call.bound_to, "")
    if not queue:
        return await schedule(call, False)
    there = {"task_queue": queue, "schedule_to_start": TAKEN_WITHIN}
    try:
        return await schedule(call.model_copy(update={"options": call.options.model_copy(update=there)}), True)
    except ActivityError as error:
        if not isinstance(error.cause, TimeoutError) or error.cause.type != TimeoutType.SCHEDULE_TO_START:
            raise
    return await schedule(call, True)


def note(state: RunState, call: PlannedCall, outcome: CallOutcome) -> None:
    """Remember which worker has the session now."""
    if call.bound_to and outcome.bound_queue:
        state.bound[call.bound_to] = outcome.bound_queue
