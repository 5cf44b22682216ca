"""One decision in its turn: who sends it, whether they may, whether what they send is valid, and what it comes to."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import MAX_PAYLOAD, Complete, Decide, Decided, PlannedCall, fitting, payload_size
    from perdure.errors import (
        AlreadyDecided,
        InternalError,
        InvalidRequest,
        NotAllowed,
        NotChecked,
        NotPending,
        PerdureError,
    )
    from perdure.workflows import asides, decisions
    from perdure.workflows.state import RunState
    from perdure.workflows.verbs import all_heard, check_room, refuse
    from perdure.workflows.waits import Arrival, Waiting, Who


async def consider(state: RunState, waiting: Waiting, arrival: Arrival) -> None:
    """Check a decision, apply it, answer it. Raises `CancelledError`; then it is answered, too."""
    try:
        arrival.answer = await _decide(state, waiting, arrival)
        state.progressed = True
    except Exception as error:  # also a fault of ours: whoever waits for the answer gets one
        refuse(state, arrival, error if isinstance(error, PerdureError) else InternalError(f"{error!r}"))
    except asyncio.CancelledError:
        refuse(state, arrival, NotPending("the run is ending"))
        raise
    await all_heard([arrival])


async def _decide(state: RunState, waiting: Waiting, arrival: Arrival) -> Decided:
    sent = arrival.sent
    if sent.call != waiting.key:
        raise AlreadyDecided(f"call {sent.call!r} is already decided: {state.decided.get(sent.call, 'edited')}")
    who = await _who(state, waiting, arrival)
    decisions.check_right(waiting, who, arrival, state.started_by)
    if isinstance(sent, Complete):
        return await _complete(state, waiting, arrival, who, sent)
    if sent.args is not None:
        await _edit(state, waiting, arrival, who, sent.args)
    again = arrival.verb == "approve" and who.name in waiting.votes
    answer = _vote(waiting, arrival, who, sent)
    if answer.outcome != "edited" and not again:
        _note(state, answer.outcome, waiting.call, arrival, who, reason=sent.reason)
    return answer


def _vote(waiting: Waiting, arrival: Arrival, who: Who, sent: Decide) -> Decided:
    if arrival.verb == "deny":
        return decisions.deny(waiting, who, sent.reason)
    return decisions.approve(waiting, who, sent.reason)


async def _who(state: RunState, waiting: Waiting, arrival: Arrival) -> Who:
    """Who decides, by the app's verifier where there is one. `by` is then at most a repetition."""
    sent = arrival.sent
    if state.plan is None or not state.plan.verifies:
        return Who(sent.by)
    use = decisions.token_use(waiting, arrival, workflow.info().workflow_id)
    verified = await asides.verify(state, sent.token, use)
    if verified.principal is None:
        raise NotAllowed(f"who decides call {waiting.key!r} isn't verified: {verified.problem}")
    name = verified.principal.name
    if sent.by and sent.by != name:
        raise NotAllowed(f"the token of {name!r} can't decide as {sent.by!r}")
    return Who(name, tuple(verified.principal.groups), verified=True)


async def _edit(state: RunState, waiting: Waiting, arrival: Arrival, who: Who, args: dict[str, Any]) -> None:
    """Show other arguments from now on, under another key, once they are known to be valid."""
    with checking(state, check_room(state, args)):
        checked = await asides.check_edit(state, waiting.call, args)
    if checked.call is None:
        raise InvalidRequest(f"the arguments for call {waiting.key!r} are refused: {checked.problem}")
    before, after = waiting.call, checked.call
    both = {"args": fitting(after.args), "original_args": fitting(before.args)}
    decisions.edit(waiting, who, after)
    _note(state, "edited", before, arrival, who, new_call=after.key, **both)
    if waiting.key != before.key:
        del state.waiting[before.key]
        state.waiting[waiting.key] = waiting
        state.decided[before.key] = f"its arguments were edited by {who.name!r}; its key is now {waiting.key!r}"


async def _complete(state: RunState, waiting: Waiting, arrival: Arrival, who: Who, sent: Complete) -> Decided:
    if sent.error is None and waiting.call.checked:
        with checking(state, payload_size(sent.result)):
            checked = await asides.check_result(state, waiting.call, sent.result)
        if checked.problem:
            raise InvalidRequest(f"the result of call {waiting.key!r} is refused: {checked.problem}")
    answer = decisions.complete(waiting, who, sent)
    _note(state, "completed" if sent.error is None else "failed", waiting.call, arrival, who, reason=sent.error)
    return answer


@contextmanager
def checking(state: RunState, size: int) -> Generator[None]:
    """Count what activities check at once: the inputs of one workflow task together have to stay under 4 MB."""
    if state.checking + size > MAX_PAYLOAD:
        raise NotChecked(f"{state.checking} bytes of other decisions are being checked; send it again")
    state.checking += size
    try:
        yield
    finally:
        state.checking -= size


def _note(state: RunState, event: str, call: PlannedCall, arrival: Arrival, who: Who, **more: Any) -> None:
    """A row of the audit: who, whether that is a claim or verified, and how it came."""
    how = {"verified": True, "groups": list(who.groups)} if who.verified else {"claimed": True}
    state.note(event, call, arrival.at, by=who.name, via=arrival.via, **how, **more)
