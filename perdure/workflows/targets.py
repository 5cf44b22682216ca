"""Calls that the workflow makes itself: an existing activity, in any language, under its own type and queue.

No code of the agent runs for them. What they answer with is JSON; `told` in the transcript as the call's result.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import MAX_PAYLOAD, CallOutcome, PlannedCall, Target, payload_size, told
    from perdure.workflows import requests
    from perdure.workflows.options import activity_options
    from perdure.workflows.state import RunState


async def run(state: RunState, call: PlannedCall, target: Target) -> CallOutcome:
    """Make the call and return its outcome. Raises `FailureError` where what was scheduled failed."""
    match target.kind:
        case "activity":
            result = await _activity(state, call, target)
        case "unknown":
            return told(call, "failed", "This version of perdure can't do what was planned for this call.")
    return _returned(call, result)


async def _activity(state: RunState, call: PlannedCall, target: Target) -> Any:
    options = call.options
    return await requests.execute_with(
        state,
        target.name,
        arguments(call, target),
        task_queue=options.task_queue or target.task_queue,
        heartbeat_timeout=timedelta(seconds=options.heartbeat) if target.heartbeats else None,
        **activity_options(call),
    )


def arguments(call: PlannedCall, target: Target) -> list[Any]:
    """The arguments as what is called takes them: one object, or each by its place."""
    if not target.positional:
        return [call.args]
    return [call.args.get(name) for name in target.positional]


def _returned(call: PlannedCall, result: Any) -> CallOutcome:
    size, most = payload_size(result), call.options.max_result_bytes or MAX_PAYLOAD
    if size > most:
        return told(call, "failed", f"The result has {size} bytes, more than the {most} that are allowed.")
    return told(call, "returned", "").model_copy(update={"result": [result]})
