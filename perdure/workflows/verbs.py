"""What people and other systems send while a run is open: checks it, applies it, and keeps what can't be used."""

from __future__ import annotations

from typing import Any, Literal

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Complete, Decide, Decided, PlannedCall
    from perdure.errors import AlreadyDecided, InvalidRequest, NotAllowed
    from perdure.workflows import decisions, requests
    from perdure.workflows.decisions import MAX_REASON, Waiting
    from perdure.workflows.entry import one_argument
    from perdure.workflows.state import RunState

Via = Literal["update", "signal"]
Verb = Literal["approve", "deny"]


def check_decide(state: RunState, verb: Verb, raw: tuple[Any, ...]) -> tuple[Decide, Waiting]:
    """The argument and what it decides. Raises what the sender is told; changes nothing."""
    sent = one_argument(raw, Decide)
    waiting = decisions.find(state.waiting, state.decided, sent.call, "approval")
    if waiting.resolution is not None:
        raise AlreadyDecided(f"call {sent.call!r} is already decided: {waiting.resolution.outcome}")
    if len(sent.reason) > MAX_REASON:
        raise InvalidRequest(f"the reason has {len(sent.reason)} characters; it may have {MAX_REASON}")
    if verb == "deny" and sent.args is not None:
        raise InvalidRequest("deny takes no args")
    decisions.check_vote(waiting, sent.by, sent.args)
    return sent, waiting


def decide(state: RunState, verb: Verb, raw: tuple[Any, ...], via: Via, edited: PlannedCall | None = None) -> Decided:
    """Apply a decision."""
    sent, waiting = check_decide(state, verb, raw)
    before = waiting.call
    answer = (
        decisions.deny(waiting, sent.reason)
        if verb == "deny"
        else decisions.approve(waiting, sent.by, sent.reason, edited)
    )
    more = {"args": edited.args, "original_args": before.args} if edited else {}
    state.note(answer.outcome, before, workflow.now(), by=sent.by, claimed=True, via=via, reason=sent.reason, **more)
    if waiting.resolution is not None:
        state.decided[sent.call] = waiting.resolution.outcome
    return answer


async def decide_with_edit(state: RunState, raw: tuple[Any, ...]) -> Decided:
    """Approve other arguments: they are checked first, and what waits may be decided by somebody else meanwhile."""
    sent, waiting = check_decide(state, "approve", raw)
    if sent.args is None:
        return decide(state, "approve", raw, "update")
    checked = await requests.check_edit(state, waiting.call, sent.args)
    if checked.call is None:
        raise NotAllowed(f"the arguments for call {sent.call!r} are refused: {checked.problem}")
    return decide(state, "approve", raw, "update", edited=checked.call)


def check_complete(state: RunState, raw: tuple[Any, ...]) -> tuple[Complete, Waiting]:
    """The argument and what it completes. Raises what the sender is told; changes nothing."""
    sent = one_argument(raw, Complete)
    waiting = decisions.find(state.waiting, state.decided, sent.call, "result")
    if waiting.resolution is not None:
        raise AlreadyDecided(f"call {sent.call!r} already has its result")
    if sent.error is not None and sent.result is not None:
        raise InvalidRequest("complete takes a result or an error, not both")
    return sent, waiting


def complete(state: RunState, raw: tuple[Any, ...], via: Via) -> Decided:
    """Apply a result."""
    sent, waiting = check_complete(state, raw)
    answer = decisions.complete(waiting, sent.result, sent.error)
    state.decided[sent.call] = "completed"
    state.note("completed", waiting.call, workflow.now(), by=sent.by, claimed=True, via=via, reason=sent.error)
    return answer
