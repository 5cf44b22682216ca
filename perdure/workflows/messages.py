"""What people send to a session as it arrives: messages, interrupts, and that it should close."""

from __future__ import annotations

from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Fault, Heard, Message, Send, Steer, TurnView, payload_size, unfit
    from perdure.errors import InvalidRequest, NotPending, SessionClosing
    from perdure.workflows import details, turns
    from perdure.workflows.entry import one_argument
    from perdure.workflows.rollover import refuse_while_rolling
    from perdure.workflows.state import RunState

MAX_QUEUED = 1_000_000
"""Bytes of the messages that wait for their turn, all together: they go along when the run continues as new."""
MAX_MESSAGES = 1_000


def check_send(state: RunState, raw: tuple[Any, ...]) -> None:
    """Raise what the sender of a message is told by the update; nothing is recorded then."""
    refuse_while_rolling(state)
    _checked(state, raw)


def send(state: RunState, raw: tuple[Any, ...]) -> TurnView:
    """Put a message in line. A repeat of its id changes nothing. Raises `InvalidRequest`, `SessionClosing`."""
    sent, known = _checked(state, raw)
    if known is not None:
        return known
    name = sent.id or str(workflow.uuid4())
    message = Message(id=name, content=sent.content, at=workflow.now(), when_busy=sent.when_busy, by=sent.by)
    place = len(state.queue)
    if message.when_busy == "interrupt" and state.in_turn:
        place = next((at for at, other in enumerate(state.queue) if other.when_busy != "interrupt"), place)
        _stop(state, Fault(type="Interrupted", message=_why("another message", message.by)))
    state.queue.insert(place, message)
    state.progressed = True
    details.show(state)
    return TurnView(state="queued", messages=[message.id])


def check_interrupt(state: RunState, raw: tuple[Any, ...]) -> None:
    """Raise what the sender of an interrupt is told by the update."""
    refuse_while_rolling(state)
    _interrupt(state, raw)


def interrupt(state: RunState, raw: tuple[Any, ...]) -> Heard:
    """End the running turn; the session goes on. Raises `NotPending`, `InvalidRequest`."""
    sent = _interrupt(state, raw)
    _stop(state, Fault(type="Interrupted", message=_why("the turn was interrupted", sent.by, sent.reason)))
    return Heard(state=details.state_of(state))


def _interrupt(state: RunState, raw: tuple[Any, ...]) -> Steer:
    sent = one_argument(raw, Steer)
    if not state.in_turn and state.queue:
        raise NotPending("no turn is running yet: the next one is about to begin; send it again")
    if not state.in_turn:
        raise NotPending(f"no turn is running: the run is {details.state_of(state)}")
    if not state.is_session:
        raise InvalidRequest(
            "the run isn't a session, so nothing would be left: cancel it, or send a message with when_busy='interrupt'"
        )
    return sent


def check_close(state: RunState, raw: tuple[Any, ...]) -> None:
    """Raise what the sender of a close is told by the update."""
    refuse_while_rolling(state)
    _close(state, raw)


def close(state: RunState, raw: tuple[Any, ...]) -> Heard:
    """Take no further message; the run completes when those that wait have their answer. Twice is no fault."""
    _close(state, raw)
    state.closing = True
    details.show(state)
    return Heard(state=details.state_of(state))


def _close(state: RunState, raw: tuple[Any, ...]) -> None:
    one_argument(raw, Steer)
    if not state.is_session:
        raise InvalidRequest("the run isn't a session: it ends by itself when every message has its answer")


def _stop(state: RunState, why: Fault) -> None:
    if state.in_turn and state.interrupt is None:
        state.interrupt = why


def _why(what: str, by: str, reason: str = "") -> str:
    return f"{what}{f' by {by!r}' if by else ''}{f': {reason}' if reason else ''}"


def _checked(state: RunState, raw: tuple[Any, ...]) -> tuple[Send, TurnView | None]:
    """What was sent, and what is known of it where it is a repeat. Changes nothing."""
    sent = one_argument(raw, Send)
    known = turns.of_message(state, sent.id) if sent.id else None
    if known is None:
        if state.done or state.closing:
            raise SessionClosing("the session is being closed and takes no further message: start another one")
        _check_room(state, sent)
    return sent, known


def _check_room(state: RunState, sent: Send) -> None:
    if not sent.content:
        raise InvalidRequest("the message is empty")
    if why := unfit(sent.content):
        raise InvalidRequest(f"the contents of the message {why}")
    size = payload_size(sent.content)
    waiting = sum(payload_size(message.content) for message in state.queue if message.id != turns.PROMPT_ID)
    if waiting + size > MAX_QUEUED:
        beside = f"; {waiting} bytes of others wait for their turn" if waiting else ""
        raise InvalidRequest(
            f"the message has {size} bytes; messages that wait may have {MAX_QUEUED} in all{beside}. Put large inputs "
            "where a tool can read them."
        )
    if len(state.queue) >= MAX_MESSAGES:
        raise InvalidRequest(f"{len(state.queue)} messages wait for their turn: no more are taken until some had it")
