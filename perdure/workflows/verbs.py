"""What people and other systems send while a run is open, as it arrives: checked, put in line, answered.

Decisions on one call are looked at one after the other, in the order of their arrival: who comes while an earlier one
is being verified waits for its end. See `deciding`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import MAX_PAYLOAD, Complete, Decide, Decided, VerbName, cut, payload_size, unfit
    from perdure.errors import AlreadyDecided, InvalidRequest, NotPending, PerdureError
    from perdure.workflows import decisions, reports
    from perdure.workflows.entry import one_argument
    from perdure.workflows.rollover import refuse_while_rolling
    from perdure.workflows.state import RunState
    from perdure.workflows.tokens import check_token
    from perdure.workflows.waits import Arrival, Via, Waiting, Who

MAX_REFUSAL = 1_000
"""Characters of a refusal in the audit."""
MAX_REFUSED = 20
"""Decisions on one call that came to nothing and are kept in the audit. Further updates are refused unrecorded."""


def check(state: RunState, verb: VerbName, raw: tuple[Any, ...]) -> None:
    """Raise what the sender of an update is told; nothing is recorded then, and nothing changed.

    One that comes too late is let through and told so by the handler, which can keep it in the audit.
    """
    refuse_while_rolling(state)
    try:
        _checked(state, verb, raw, "update")
    except AlreadyDecided:
        place = _read(verb, raw).call
        if state.done or state.refused.get(place, 0) >= MAX_REFUSED:
            raise


def arrive(state: RunState, verb: VerbName, raw: tuple[Any, ...], via: Via) -> Arrival:
    """Put a decision in line. Raises what the sender is told."""
    try:
        arrival, waiting = _checked(state, verb, raw, via)
    except AlreadyDecided as error:
        keep_refused(state, verb, _read(verb, raw), via, error)
        raise
    waiting.arrived.append(arrival)
    return arrival


async def by_update(state: RunState, verb: VerbName, raw: tuple[Any, ...]) -> Decided:
    """Put a decision in line and wait for its answer."""
    arrival = arrive(state, verb, raw, "update")
    await workflow.wait_condition(lambda: arrival.answer is not None)
    arrival.heard = True
    if isinstance(arrival.answer, Decided):
        return arrival.answer
    raise arrival.answer or InvalidRequest("no answer")


async def all_heard(arrivals: Sequence[Arrival]) -> None:
    """Wait until every update among them has taken its answer: nothing else is commanded before.

    Temporal may run two workflow tasks as one when it replays, an update then before what was there earlier (seen with
    sdk-core 1.35, no cache, after a task without commands). With a fixed order that makes no difference.
    """
    if any(arrival.is_open for arrival in arrivals):
        await workflow.wait_condition(lambda: not any(arrival.is_open for arrival in arrivals))


def refuse(state: RunState, arrival: Arrival, error: PerdureError) -> None:
    """Answer a decision that came to nothing; keep it in the audit, and a signal in `rejected`."""
    arrival.answer = error
    keep_refused(state, arrival.verb, arrival.sent, arrival.via, error)
    if arrival.via == "signal":
        state.reject(arrival.verb, str(error), workflow.now())


def keep_refused(state: RunState, verb: VerbName, sent: Decide | Complete, via: Via, error: PerdureError) -> None:
    """Keep a decision that came to nothing in the audit, as far as there aren't many of one call."""
    count = state.refused[sent.call] = state.refused.get(sent.call, 0) + 1
    if count <= MAX_REFUSED:
        row = {"at": workflow.now().isoformat(), "event": "refused", "call": sent.call, "decision": verb}
        state.audit.append(
            row | {"claimed_by": sent.by, "via": via, "reason": cut(f"{error.type}: {error}", MAX_REFUSAL)}
        )


def _read(verb: VerbName, raw: tuple[Any, ...]) -> Decide | Complete:
    return one_argument(raw, Complete if verb == "complete" else Decide)


def _checked(state: RunState, verb: VerbName, raw: tuple[Any, ...], via: Via) -> tuple[Arrival, Waiting]:
    sent = _read(verb, raw)
    if sent.call not in state.waiting and (run := reports.address(state, sent.call)):
        raise NotPending(f"call {sent.call!r} waits in run {run!r}, which this run has started: send it there")
    waiting = decisions.find(state.waiting, state.decided, sent.call, verb)
    if waiting.resolution is not None:
        raise AlreadyDecided(f"call {sent.call!r} is already decided: {waiting.resolution.outcome}")
    arrival = Arrival(verb, sent, via, workflow.now())
    _check_shape(arrival)
    _check_size(state, arrival.sent)
    if state.plan is not None and state.plan.verifies:
        if not sent.token:
            raise InvalidRequest(f"call {sent.call!r} can't be decided without a 'token' that shows who you are")
        if not state.plan.encrypts:
            check_token(sent.token, decisions.token_use(waiting, arrival, workflow.info().workflow_id))
    elif sent.token:
        raise InvalidRequest("this app has no verifier, so nobody can check a 'token': leave it out")
    else:
        decisions.check_right(waiting, Who(sent.by), arrival, state.started_by)
    return arrival, waiting


def _check_shape(arrival: Arrival) -> None:
    if isinstance(arrival.sent, Decide):
        if arrival.verb == "deny" and arrival.sent.args is not None:
            raise InvalidRequest("deny takes no args")
        return
    given = arrival.sent.model_fields_set & {"result", "error"}
    if len(given) != 1:
        raise InvalidRequest("complete takes a result or an error, one of them; a result of nothing is written as null")


def _check_size(state: RunState, sent: Decide | Complete) -> None:
    what, value = ("args", sent.args) if isinstance(sent, Decide) else ("result", sent.result)
    if why := unfit(value):
        raise InvalidRequest(f"the {what} {why}")
    if what == "args" and value is not None:
        check_room(state, value)
    elif (size := payload_size(value)) > MAX_PAYLOAD:
        raise InvalidRequest(f"the result has {size} bytes; it may have {MAX_PAYLOAD}. Send a reference to it")


def check_room(state: RunState, args: Any) -> int:
    """The size of edited arguments. Raises `InvalidRequest` where they don't fit beside what waits and runs: all of it
    together has to be shown by one query and started by one workflow task."""
    calls = [*(waiting.call for waiting in state.waiting.values()), *state.open_calls.values()]
    room = MAX_PAYLOAD - sum(payload_size(call.args) for call in calls) - state.checking
    size = payload_size(args)
    if size > room:
        raise InvalidRequest(f"the args have {size} bytes; beside what waits there is room for {max(0, room)}")
    return size
