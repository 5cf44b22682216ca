"""Calls that the workflow makes itself: an activity, a workflow or a Nexus operation that somebody else serves, in any
language, under its own type and queue. No code of the agent runs for them. What they answer with is JSON."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import CallOutcome, PlannedCall, Target, told
    from perdure.workflows import endpoints, handoff, subagents
    from perdure.workflows.begun import GivenUp, ended
    from perdure.workflows.cancelling import raise_if_cancelled
    from perdure.workflows.children import run_child
    from perdure.workflows.effects import given_up
    from perdure.workflows.keys import idempotency_key
    from perdure.workflows.options import activity_options
    from perdure.workflows.remote_failures import outcome_of_remote
    from perdure.workflows.remote_results import outcome_of_result
    from perdure.workflows.state import RunState

NO_NAME = "What was planned for this call doesn't say what would run it."
"""The command would be refused by the server, and the workflow task fail for ever."""
NOT_KNOWN = "This version of perdure can't do what was planned for this call."


class NotMade(Exception):
    """A call can't be made; says why. Never leaves the workflow."""


async def run(state: RunState, call: PlannedCall, target: Target) -> CallOutcome:
    """Make the call and return its outcome. Raises `CancelledError` where it hasn't begun."""
    if not target.name or (target.kind == "nexus" and not target.service):
        return told(call, "failed", NOT_KNOWN if target.kind == "unknown" else NO_NAME)
    try:
        match target.kind:
            case "activity":
                result = await _activity(state, call, target)
            case "workflow":
                result = await _workflow(state, call, target)
            case "nexus":
                result = await _operation(state, call, target)
            case "agent":
                return await subagents.run(state, call, target)
            case "handoff":
                return await handoff.run(state, call, target)
            case "unknown":
                return told(call, "failed", NOT_KNOWN)
    except GivenUp:
        return given_up(call)
    except NotMade as error:
        return told(call, "failed", f"The call was not made: {error}.")
    except FailureError as failure:
        return outcome_of_remote(call, target, failure)
    return await outcome_of_result(state, call, result)


async def _activity(state: RunState, call: PlannedCall, target: Target) -> RawValue:
    """Its id is the idempotency key, which whoever serves it can read."""
    options = call.options
    beats = options.heartbeat if target.heartbeats else 0.0

    async def work() -> Any:
        return await workflow.execute_activity(
            target.name,
            args=arguments(call, target),
            activity_id=idempotency_key(call),
            task_queue=options.task_queue or target.task_queue,
            heartbeat_timeout=timedelta(seconds=beats) if beats else None,
            result_type=RawValue,
            **activity_options(call),
        )

    return await ended(state, work(), options.grace + beats)  # it hears of a cancel with its next heartbeat


async def _workflow(state: RunState, call: PlannedCall, target: Target) -> RawValue:
    options = call.options
    retries = None if options.attempts == 1 else _retries(call)
    args = arguments(call, target)
    more: dict[str, Any] = {"execution_timeout": options.timeout, "retries": retries}
    return await run_child(state, call, target.name, args, task_queue=target.task_queue, **more)


async def _operation(state: RunState, call: PlannedCall, target: Target) -> RawValue:
    await _check_operation(state, call, target)
    client: workflow.NexusClient[Any] = workflow.create_nexus_client(service=target.service, endpoint=target.endpoint)
    options = call.options
    wait = options.schedule_to_start

    async def work() -> Any:
        args = arguments(call, target)
        handle = await client.start_operation(
            target.name,
            args[0] if args else None,
            output_type=RawValue,
            schedule_to_close_timeout=timedelta(seconds=options.start_to_close),
            schedule_to_start_timeout=None if wait is None else timedelta(seconds=wait),
            headers={"idempotency-key": idempotency_key(call)},
            summary=call.key,
        )
        return await handle

    return await ended(state, work(), options.grace)


async def _check_operation(state: RunState, call: PlannedCall, target: Target) -> None:
    """Raise `NotMade` where the operation can't be begun, or might be begun twice."""
    if call.options.effect == "unsafe":
        raise NotMade("a Nexus operation may be begun more than once, and its policy says that it never may")
    try:
        problem = await endpoints.problem_of(state, target.endpoint)
    except FailureError:
        raise_if_cancelled()
        problem = f"whether there is a Nexus endpoint {target.endpoint!r} could not be found out"
    if problem:
        raise NotMade(problem)


def _retries(call: PlannedCall) -> RetryPolicy:
    policy: RetryPolicy = activity_options(call)["retry_policy"]
    return policy


def arguments(call: PlannedCall, target: Target) -> list[Any]:
    """The arguments as what is called takes them: none, one object, or each by its place."""
    if target.no_arguments:
        return []
    if not target.positional:
        return [call.args]
    return [call.args.get(name) for name in target.positional]
