"""The short activities around a decision, as the workflow schedules them: who decides, whether what was sent is valid,
what is told to people, what is handed to other systems."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, FailureError

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import (
        EditCheck,
        EditInput,
        ExternalCall,
        Notification,
        PlannedCall,
        Recorded,
        ResultCheck,
        ResultInput,
        TokenUse,
        Verified,
        VerifyInput,
        cut,
        fitting,
    )
    from perdure.errors import NotChecked
    from perdure.workflows.cancelling import raise_if_cancelled
    from perdure.workflows.keys import idempotency_key
    from perdure.workflows.requests import execute, position
    from perdure.workflows.state import RunState
    from perdure.workflows.waits import Waiting

CHECK = timedelta(seconds=10)
CHECK_IN_ALL = timedelta(seconds=60)
"""Who decides next waits for a check of who decided first, so it ends."""
TELL = timedelta(seconds=30)
TELL_IN_ALL = timedelta(minutes=10)
"""A dead webhook must not hold up a run for longer."""

T = TypeVar("T", bound="Recorded")


async def verify(state: RunState, token: str, use: TokenUse) -> Verified:
    """Ask the app's verifier whose token it is. Raises `NotChecked`."""
    return await _checked(state, "verify", VerifyInput(token=token, use=use), use.call, Verified)


async def check_edit(state: RunState, call: PlannedCall, args: dict[str, Any]) -> EditCheck:
    """Whether other arguments are valid: types, validators, the gate anew. Raises `NotChecked`."""
    return await _checked(state, "check_edit", EditInput(call=call, args=args, **position(state)), call.key, EditCheck)


async def check_result(state: RunState, call: PlannedCall, result: Any) -> ResultCheck:
    """Whether a result from outside is what its schema says. Raises `NotChecked`."""
    input = ResultInput(agent=state.agent, tool=call.tool, result_schema=call.result_schema, result=[result])
    return await _checked(state, "check_result", input, call.key, ResultCheck)


async def _checked(state: RunState, activity: str, input: Recorded, key: str, answer: type[T]) -> T:
    try:
        raw = await execute(
            state,
            activity,
            input,
            start_to_close_timeout=CHECK,
            schedule_to_close_timeout=CHECK_IN_ALL,
            retry_policy=RetryPolicy(maximum_attempts=3),
            summary=key,
        )
    except FailureError as failure:
        raise_if_cancelled()
        raise NotChecked(f"{activity} failed, so nothing was changed; send it again: {_why(failure)}") from None
    return answer.model_validate(raw)


async def dispatch(state: RunState, waiting: Waiting) -> str:
    """Hand a call to the outside; returns why that failed, or nothing."""
    call, info, request = waiting.call, workflow.info(), state.request
    input = ExternalCall(
        workflow_id=info.workflow_id,
        run_id=info.first_execution_run_id,
        agent=state.agent,
        call=waiting.key,
        kind=waiting.kind,
        tool=call.tool,
        tool_call_id=call.tool_call_id,
        args=call.args,
        metadata=call.metadata,
        run_metadata=fitting(request.metadata) if request else {},
        idempotency_key=idempotency_key(call),
        expires_at=waiting.expires_at.isoformat() if waiting.expires_at else None,
    )
    return await _told(state, "dispatch", input, waiting.key)


async def notify(state: RunState, notification: Notification) -> str:
    """Tell people; returns why that failed, or nothing."""
    return await _told(state, "notify", notification, f"{notification.event} {notification.call}")


async def _told(state: RunState, activity: str, input: Recorded, summary: str) -> str:
    try:
        await execute(
            state,
            activity,
            input,
            start_to_close_timeout=TELL,
            schedule_to_close_timeout=TELL_IN_ALL,
            retry_policy=RetryPolicy(maximum_interval=timedelta(seconds=60)),
            summary=summary,
        )
    except FailureError as failure:
        raise_if_cancelled()
        return _why(failure)
    return ""


def _why(failure: FailureError) -> str:
    cause = failure.cause if isinstance(failure, ActivityError) else failure
    return cut(str(cause or failure), 500)
