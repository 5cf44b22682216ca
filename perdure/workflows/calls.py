"""One call of a tool, run: as the activity `tool:<name>` of a worker of the agent, or by what its plan names."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import (
        MAY_HAVE_RUN,
        TOOL_ACTIVITY_PREFIX,
        CallOutcome,
        Fault,
        Moved,
        PlannedCall,
        ToolInput,
        cut,
        told,
    )
    from perdure.workflows import bound, clock, details, requests, targets
    from perdure.workflows.cancelling import cancelled
    from perdure.workflows.effects import outcome_of_failure, stopped
    from perdure.workflows.keys import idempotency_key
    from perdure.workflows.options import activity_options
    from perdure.workflows.state import RunState


async def tool_call(state: RunState, call: PlannedCall, approved_by: list[str] | None = None) -> CallOutcome:
    """Run one call as its own activity. Never raises: what happens to the activity is an outcome of the call.

    `approved_by` only where a decision is recorded: who approved.
    """
    state.open_calls[call.key] = call
    _show(state)
    outcome = await _attempt(state, call, approved_by)  # no `finally`: it also runs when an instance is forgotten
    del state.open_calls[call.key]
    _show(state)
    return outcome


def _show(state: RunState) -> None:
    """A call has begun or ended: let the clocks, the page and the run above know."""
    clock.tick(state)
    details.show(state)
    details.tell(state)


async def _attempt(state: RunState, call: PlannedCall, approved_by: list[str] | None) -> CallOutcome:
    try:
        if call.target is not None:
            return await targets.run(state, call, call.target)
        raw = await bound.scheduled(state, call, partial(_schedule, state, approved_by))
        outcome = CallOutcome.model_validate(raw)
        bound.note(state, call, outcome)
        if outcome.moved is None or outcome.moved.target is None:
            return outcome
    except FailureError as failure:
        return outcome_of_failure(call, failure)
    except asyncio.CancelledError:
        return stopped(call, begun=call.target is None)  # of an activity, the SDK raises it where that has just ended
    except Exception as error:  # an answer of another version, say: the siblings must not be left behind
        return told(
            call, "unknown", MAY_HAVE_RUN, Fault(type="InternalError", message=cut(f"{type(error).__name__}: {error}"))
        )
    return await _moved(state, call, outcome.moved)


async def _moved(state: RunState, call: PlannedCall, moved: Moved) -> CallOutcome:
    """Make a call where it is served now: no worker of the agent has run it."""
    if cancelled():
        return stopped(call, begun=False)
    how = {"target": moved.target, "options": moved.options, "checked": moved.checked}
    return await _attempt(state, call.model_copy(update=how), None)


async def _schedule(state: RunState, approved_by: list[str] | None, call: PlannedCall, had_session: bool) -> Any:
    options = call.options
    decision = {} if approved_by is None else {"approved": True, "approved_by": approved_by}
    return await requests.execute(
        state,
        TOOL_ACTIVITY_PREFIX + call.tool,
        ToolInput(
            call=call,
            idempotency_key=idempotency_key(call),
            bound=had_session,
            **decision,
            **requests.position(state),
        ),
        task_queue=options.task_queue,
        heartbeat_timeout=timedelta(seconds=options.heartbeat),
        **activity_options(call),
    )
