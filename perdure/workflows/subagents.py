"""A call that another agent answers: a run of its own, a child workflow, with a share of what this run has left."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any, cast

from temporalio import workflow
from temporalio.common import RawValue, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, CancelledError, FailureError, WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import (
        MAX_PAYLOAD,
        WORKFLOW_TYPE,
        AgentTerms,
        CallOutcome,
        Json,
        Limits,
        PlannedCall,
        RunResult,
        Target,
        Usage,
        Within,
        cut,
        payload_size,
        told,
    )
    from perdure.workflows import budget, clock, details, rooms, upward
    from perdure.workflows.begun import GivenUp
    from perdure.workflows.children import run_child
    from perdure.workflows.effects import given_up, lost
    from perdure.workflows.keys import child_id
    from perdure.workflows.remote_results import outcome_of_result, read
    from perdure.workflows.state import Below, RunState

ALLOW_DUPLICATE = WorkflowIDReusePolicy.ALLOW_DUPLICATE
"""After a reset a run that has ended is run again, as every activity behind the reset point is."""
PAUSES = (0.5, 1, 2, 4, 8, 16)
"""Seconds between tries to start a run, while an earlier one with its id ends."""
GRACE = 30.0
"""Seconds that a cancelled run has, for each level of runs that may be below: it doesn't tell how many there are."""
NOT_MADE = "The call was not made"
OWN_WORDS = ("InvalidRequest", "UnknownAgent", "LimitExceeded")
MAX_MESSAGE = 300
"""Characters. Other messages may hold a secret."""


async def run(state: RunState, call: PlannedCall, target: Target) -> CallOutcome:
    """Let another agent answer the call. Whatever becomes of its run is an outcome of the call."""
    terms = target.agent or AgentTerms()
    depth = _depth(state) + 1
    if depth > terms.max_depth:
        return told(call, "failed", f"{NOT_MADE}: agents may call each other {terms.max_depth} deep, and no deeper.")
    below = Below(child_id(call), share(state, call))
    if name := rooms.used_up(below.room):
        return told(call, "failed", f"{NOT_MADE}: no {name} are left for it.")
    asked = _request(state, call, target, terms, Within(call=call.key, depth=depth, room=below.room))
    if problem := too_large(state, call, asked):
        return told(call, "failed", f"{NOT_MADE}: {problem}.")
    state.below[call.key] = below
    try:
        outcome = await _outcome(state, call, target, asked, below)
    finally:
        del state.below[call.key]  # what it has used is counted in the same task, when this call returns
    used = budget.add_usage(below.usage, Usage(tool_calls=1)) if below.began else Usage()
    details.waits(state)
    return outcome.model_copy(update={"usage": used})


def share(state: RunState, call: PlannedCall) -> Limits:
    """What the run of a call may use: see `rooms`."""
    current = state.current
    open_calls = [one for one in current.step.calls if one.key not in current.outcomes] if current else [call]
    to_start = [one for one in open_calls if _is_agent(one) and one.key not in state.below]
    first = None if state.plan and state.plan.deadline_pauses else clock.first(state)
    own = None if call.options.timeout is None else timedelta(seconds=call.options.timeout)
    ends = [time for time in (own, None if first is None else first.moment - workflow.now()) if time is not None]
    return rooms.share(
        state.limits,
        state.usage,
        budget.used_since(state.turn_usage, state.usage),
        calls=len(open_calls),
        held=[below.room for below in state.below.values()],
        sharers=max(1, len(to_start)),
        ends=min(ends, default=None),
    )


def too_large(state: RunState, call: PlannedCall, asked: Json) -> str:
    """Why a request can't be sent: what it has beside the arguments, which a step holds once, it has for each call."""
    calls = len(state.current.step.calls) if state.current else 1
    whole = payload_size(asked)
    size, most = whole - payload_size(call.args), MAX_PAYLOAD // 2 // max(1, calls)
    if size > most:
        return f"params and metadata have {size} bytes; beside {calls - 1} other calls they may have {most}"
    return f"with params and metadata it has {whole} bytes; it may have {MAX_PAYLOAD}" if whole > MAX_PAYLOAD else ""


def _is_agent(call: PlannedCall) -> bool:
    return call.target is not None and call.target.kind == "agent"


def _depth(state: RunState) -> int:
    return state.request.within.depth if state.request and state.request.within else 0


def _request(state: RunState, call: PlannedCall, target: Target, terms: AgentTerms, within: Within) -> Json:
    """What the other agent is asked. Plain JSON: of limits only those that are set count."""
    args: Json = dict(call.args)
    prompt = args.pop(terms.prompt, None) if terms.prompt else None
    request: Json = {"agent": target.name, "prompt": prompt if isinstance(prompt, str | list) else str(prompt)}
    request |= {"params": params} if (params := params_of(state, terms, args)) else {}
    request |= {"model": terms.model} if terms.model else {}
    request |= {"limits": terms.limits} if terms.limits else {}
    request |= {"by": state.started_by} if state.started_by else {}
    if state.request is not None and state.request.metadata:
        request["metadata"] = state.request.metadata
    return request | {"within": within.model_dump(mode="json")}


def params_of(state: RunState, terms: AgentTerms, args: Json) -> Json:
    """The params of another agent: what the model says, what is always the same, and what is this run's own."""
    own: Any = state.request.params if state.request else None
    given = cast("Json", own) if isinstance(own, dict) else {}
    return args | terms.params | {name: given[name] for name in terms.inherit if name in given}


async def _outcome(state: RunState, call: PlannedCall, target: Target, asked: Json, below: Below) -> CallOutcome:
    try:
        raw = await _started(state, call, target, asked, below)
        result = RunResult.model_validate(read(raw))
        output = RawValue(workflow.payload_converter().to_payload(result.output))
    except GivenUp:
        return given_up(call)
    except FailureError as failure:
        return _failed(call, target, failure, below)
    except (ValueError, RecursionError) as error:
        return told(call, "failed", f"The answer of {target.name!r} can't be read: {cut(str(error), 300)}")
    below.usage = result.usage
    if result.failure is not None and result.output is None:
        return told(call, "failed", f"The agent {target.name!r} has no answer: {result.failure.type}.")
    return await outcome_of_result(state, call, output)


async def _started(state: RunState, call: PlannedCall, target: Target, asked: Json, below: Below) -> RawValue:
    """Start the run and wait for its end. One of its id that is open is what this run has started before it was reset,
    which Temporal neither ends nor gives back: it is cancelled first, since nobody would hear its answer."""
    grace = GRACE * max(1, (target.agent or AgentTerms()).max_depth - _depth(state))  # those below it come first
    state.activities += 1  # between two tries, too, the run can't continue as new
    try:
        for pause in (*PAUSES, None):
            below.began = True
            try:
                return await run_child(
                    state,
                    call,
                    WORKFLOW_TYPE,
                    [asked],
                    task_queue=target.task_queue,
                    reuse=ALLOW_DUPLICATE,
                    grace=grace,
                )
            except WorkflowAlreadyStartedError:
                below.began = False
                if pause is None:
                    raise
            with suppress(FailureError):  # it has ended meanwhile
                await workflow.get_external_workflow_handle(below.run).cancel()
            await workflow.sleep(pause)
        raise AssertionError("the last try returns or raises")
    finally:
        state.activities -= 1


def _failed(call: PlannedCall, target: Target, failure: FailureError, below: Below) -> CallOutcome:
    """The outcome of a run that has no result."""
    cause = failure.cause or failure
    if isinstance(failure, WorkflowAlreadyStartedError):
        return told(call, "failed", f"{NOT_MADE}: a run {below.run!r} is open already, and doesn't end.")
    if isinstance(cause, CancelledError):
        return told(call, "cancelled", f"The run of {target.name!r} was cancelled.")
    if isinstance(cause, ApplicationError):
        below.usage = upward.used_by(cause) or below.usage
        return told(call, "failed", failed_text(target.name, cause))
    return lost(call)


def failed_text(agent: str, cause: ApplicationError) -> str:
    """What the model is told: the type, and the message only where it is perdure's own and says what to mend."""
    message = f": {cut(cause.message, MAX_MESSAGE)}" if cause.type in OWN_WORDS else ""
    return f"The agent {agent!r} failed: {cause.type or 'Exception'}{message}."
