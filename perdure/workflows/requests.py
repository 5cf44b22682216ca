"""The activities as the workflow schedules them: options, and what their failure means for the run."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, NoReturn

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, FailureError, TimeoutError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import (
        RunPlan,
        RunRequest,
        SettleInput,
        Settlement,
        Step,
        StepInput,
        bounded_details,
        cut,
    )
    from perdure.errors import InternalError, ModelFailed
    from perdure.workflows import rooms
    from perdure.workflows.cancelling import cancelled
    from perdure.workflows.state import RunState

HEARTBEAT = timedelta(seconds=30)
"""Shorter would turn a restart of the server into lost attempts."""


async def execute(state: RunState, activity: str, input: Any, **options: Any) -> Any:
    """Run an activity and return its raw answer. Every one goes through here: a run doesn't continue as new while one
    is open."""
    state.activities += 1
    try:
        return await workflow.execute_activity(activity, input, **options)
    finally:
        state.activities -= 1


async def prepare_run(state: RunState, request: RunRequest) -> RunPlan:
    """Ask the worker what it knows of the run's agent. Raises as `plan_of`."""
    return await plan_of(state, request.model_copy(update={"model": state.model}))


async def plan_of(state: RunState, request: RunRequest) -> RunPlan:
    """Ask the worker what it knows of an agent. Raises the worker's own typed error, `UnknownAgent` among them."""
    try:
        raw = await execute(
            state,
            "prepare_run",
            request,
            start_to_close_timeout=timedelta(seconds=10),
            retry_policy=RetryPolicy(maximum_attempts=3),
        )
    except FailureError as failure:
        _end_run(failure, "prepare_run")
    return RunPlan.model_validate(raw)


async def prepare_again(state: RunState, request: RunRequest) -> None:
    """Ask once more after the run has continued as new: search attributes may have been registered, a verifier added.
    Limits stay as they are; where the worker no longer takes the request, everything does, and a warning shows it."""
    plan = _plan(state)
    try:
        state.plan = await prepare_run(state, request)
        if state.handed_over:
            state.plan = state.plan.model_copy(update={"limits": rooms.lower(plan.limits, state.plan.limits)})
    except (ApplicationError, ModelFailed) as error:
        warning = f"the worker doesn't take this run as it was started, so it goes on as planned: {error}"
        state.plan = plan.model_copy(update={"warnings": [*plan.warnings, cut(warning, 500)][-5:]})


async def model_request(state: RunState) -> Step:
    """Make the next model request. Temporal repeats it on provider and infrastructure errors; then it ends the run."""
    plan = _plan(state)
    try:
        raw = await execute(
            state,
            "model_request",
            StepInput(request_input_tokens=state.limits.request_input_tokens, **position(state)),
            start_to_close_timeout=timedelta(seconds=plan.model_timeout),
            heartbeat_timeout=HEARTBEAT,
            retry_policy=_model_retries(plan),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            summary=f"step {state.step}",
        )
    except FailureError as failure:
        _end_run(failure, "model_request")
    return Step.model_validate(raw)


async def settle(state: RunState, retried: bool) -> Settlement:
    """Decide on the output calls of the last step, after its other calls."""
    plan = _plan(state)
    try:
        raw = await execute(
            state,
            "settle",
            SettleInput(retried=retried, **position(state)),
            start_to_close_timeout=timedelta(seconds=plan.model_timeout),
            heartbeat_timeout=HEARTBEAT,
            retry_policy=_model_retries(plan),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            summary=f"step {state.step}",
        )
    except FailureError as failure:
        _end_run(failure, "settle")
    return Settlement.model_validate(raw)


def position(state: RunState) -> dict[str, Any]:
    """Where the run stands, as every activity of the agent has to know it."""
    return {
        "agent": state.agent,
        "seen": state.transcript.seen(),
        "step": state.step,
        "model": state.model,
        "retries": state.retries,
        "usage": state.usage,
        "run_id": workflow.info().first_execution_run_id,
    }


def _model_retries(plan: RunPlan) -> RetryPolicy:
    return RetryPolicy(maximum_attempts=plan.model_attempts, maximum_interval=timedelta(seconds=60))


def _plan(state: RunState) -> RunPlan:
    if state.plan is None:
        raise InternalError("the run has no plan yet")
    return state.plan


def _end_run(failure: FailureError, activity: str) -> NoReturn:
    """Raise what the run ends with: a cancellation, also where it was asked for and nothing more is heard of the
    activity, or the activity's own error under its own type."""
    if is_cancelled_exception(failure) or cancelled():
        raise asyncio.CancelledError from None
    cause = failure.cause if isinstance(failure, ActivityError) else failure
    if isinstance(cause, ApplicationError):
        type = cause.type or ModelFailed.__name__
        kept = bounded_details(cause.details)
        raise ApplicationError(cut(cause.message), *kept, type=type, non_retryable=True) from None
    what = f"timed out ({cause.type.name})" if isinstance(cause, TimeoutError) and cause.type else str(cause or failure)
    raise ModelFailed(cut(f"{activity} was given up: {what}")) from None
