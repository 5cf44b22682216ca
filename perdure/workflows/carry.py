"""What a run takes along when it continues as new, and how the next run of the chain takes it up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import (
        MAX_PAYLOAD,
        CarriedStep,
        CarriedWait,
        Carry,
        Packed,
        RunRequest,
        payload_size,
    )
    from perdure.errors import InternalError, TranscriptTooLarge
    from perdure.workflows.compaction import compact
    from perdure.workflows.log import unpacked
    from perdure.workflows.state import RunState, StepInProgress
    from perdure.workflows.transcript import Transcript
    from perdure.workflows.waits import Waiting, of_limit

KEPT = 200_000
"""Bytes of messages that a summary made for want of room leaves as they are."""
MAX_DECIDED = 1_000
"""Decisions that are remembered for those who decide once more."""
MADE = ("audit", "chain", "current", "decided", "limit", "notified", "refused", "told", "transcript")
"""What the carry has in a form of its own."""
ALIKE = tuple(name for name in Carry.model_fields if name not in MADE)
"""What a run and its carry have under the same name and in the same form."""


def arguments(state: RunState) -> list[Any]:
    """The arguments of the run that follows: the request, the carry, the packed transcript and audit."""
    transcript, payloads = state.transcript.packed()
    audit = state.audit.pack()
    carry = carried(state).model_copy(
        update={"transcript": transcript, "audit": Packed(length=state.audit.length, payloads=len(audit))}
    )
    return [_slim(state.request), carry, *payloads, *audit]


def _slim(request: RunRequest | None) -> RunRequest | None:
    """The request without its prompt, which the transcript has."""
    return request.model_copy(update={"prompt": ""}) if request else None


def size(arguments: Sequence[Any]) -> int:
    """Bytes of the arguments, which Temporal counts together."""
    return sum(len(one) if isinstance(one, bytes) else payload_size(one) for one in arguments)


async def make_room(state: RunState) -> None:
    """See to it that the run can continue as new: where it has too much to take along and no payload store takes it,
    older entries give way to a summary. They stay readable in the runs of the chain before. Raises
    `TranscriptTooLarge` before a command is issued that would fail for ever."""
    total = _excess(state)
    if not total:
        return
    state.rolling = False  # the summary may take minutes: what is sent meanwhile is taken, and goes along
    upto = await compact(state, KEPT)
    if upto is not None:
        state.transcript.drop(upto)
        total = _excess(state)
    if total:
        raise TranscriptTooLarge(
            f"the run has to continue as new, and what it would take along has {total} bytes, with its transcript "
            f"compressed; {MAX_PAYLOAD} are possible, and no summary makes enough room. Configure a payload store "
            "(PERDURE_PAYLOADS)."
        )


def _excess(state: RunState) -> int:
    """The bytes of what it would take along, where they are too many."""
    if state.plan is not None and state.plan.stores:
        return 0
    total = size(arguments(state))
    return total if total > MAX_PAYLOAD else 0


def carried(state: RunState) -> Carry:
    """The state of a run that is at rest."""
    if state.plan is None or state.started is None:
        raise InternalError("the run can't continue as new before it has begun")
    alike = {name: getattr(state, name) for name in ALIKE}
    return Carry(
        **alike,
        limit=_wait(limit) if (limit := of_limit(state.waiting)) else None,
        current=_step(state),
        told=state.transcript.sent,
        decided=dict(list(state.decided.items())[-MAX_DECIDED:]),
        refused=dict(list(state.refused.items())[-MAX_DECIDED:]),
        notified=state.told,
        chain=state.chain + 1,
    )


def _step(state: RunState) -> CarriedStep | None:
    current = state.current
    if current is None:
        return None
    waits = [_wait(waiting) for waiting in state.in_order if waiting.kind != "limit"]
    return CarriedStep(step=current.step, outcomes=list(current.outcomes.values()), waits=waits)


def _wait(waiting: Waiting) -> CarriedWait:
    return CarriedWait(**{name: getattr(waiting, name) for name in CarriedWait.model_fields})


def _waiting(wait: CarriedWait) -> Waiting:
    return Waiting(**{name: getattr(wait, name) for name in CarriedWait.model_fields})


def restored(request: RunRequest, raw_carry: Any, payloads: Sequence[Any]) -> RunState:
    """The state of a run that goes on. Raises what Pydantic or zlib say of arguments that aren't a carry."""
    carry = Carry.model_validate(raw_carry)
    split = carry.transcript.payloads
    state = RunState(
        request=request,
        **{name: getattr(carry, name) for name in ALIKE},
        transcript=Transcript.restored(carry.transcript, carry.told, payloads[:split]),
        audit=unpacked(payloads[split:], carry.audit.base.length),
        decided=carry.decided,
        refused=carry.refused,
        told=carry.notified,
        chain=carry.chain,
    )
    if carry.current is not None:
        _restore_step(state, carry.current)
    if carry.limit is not None:
        limit = _waiting(carry.limit)
        state.waiting[limit.key] = limit
    return state


def _restore_step(state: RunState, carried: CarriedStep) -> None:
    waits = [_waiting(wait) for wait in carried.waits]
    outcomes = {outcome.key: outcome for outcome in carried.outcomes}
    state.current = StepInProgress(carried.step, outcomes, waits)
    state.waiting = {waiting.key: waiting for waiting in waits}
