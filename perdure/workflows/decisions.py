"""What waits for a person or for another system, and who may decide it. Pure, but for the workflow's clock.

A decision is bound to one call by its key and used once: the first valid one that arrives wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import ApprovalTerms, Decided, Json, PlannedCall
    from perdure.errors import AlreadyDecided, InvalidRequest, NotAllowed, NotPending

Kind = Literal["approval", "external", "question"]
MAX_REASON = 10_000
"""Characters of a reason."""


@dataclass
class Resolution:
    """How a call that waited may go on."""

    outcome: Literal["approved", "denied", "expired", "completed", "failed"]
    reason: str = ""
    call: PlannedCall | None = None
    """The call as it was approved, where its arguments were edited."""
    result: Any = None


@dataclass
class Waiting:
    """A call that waits, until it has a resolution."""

    call: PlannedCall
    kind: Kind
    asked_at: datetime
    terms: ApprovalTerms
    expires_at: datetime | None = None
    level: int = 0
    """How often it was escalated."""
    votes: list[str] = field(default_factory=list[str])
    edited_by: str = ""
    resolution: Resolution | None = None

    def view(self) -> Json:
        """One row of the query `pending`."""
        row: Json = {
            "call": self.call.key,
            "kind": self.kind,
            "tool": self.call.tool,
            "tool_call_id": self.call.tool_call_id,
            "args": self.call.args,
            "metadata": self.call.metadata,
            "asked_at": self.asked_at.isoformat(),
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
        }
        if self.kind == "approval":
            row |= {"approvers": self.terms.approvers, "needed": self.needed, "votes": list(self.votes)}
            row |= {"rule": self.terms.rule, "allow_edit": self.terms.allow_edit}
        return row

    @property
    def needed(self) -> int:
        """Votes that are still needed."""
        return max(0, self.terms.quorum - len(self.votes))


def asked(call: PlannedCall, now: datetime) -> Waiting:
    """A call that begins to wait."""
    terms = call.approval or ApprovalTerms(expires_after=call.wait)
    kind: Kind = "approval" if call.action == "approve" else "question" if call.action == "question" else "external"
    return Waiting(call, kind, now, terms, _after(now, terms.expires_after))


def escalated(waiting: Waiting, now: datetime) -> bool:
    """Hand what has expired to the next approvers, if there are any: their time begins now, votes begin anew."""
    if waiting.terms.on_expiry != "escalate" or waiting.terms.escalate_to is None:
        return False
    waiting.terms = waiting.terms.escalate_to
    waiting.expires_at = _after(now, waiting.terms.expires_after)
    waiting.level += 1
    waiting.votes = []
    return True


def find(
    waiting: Mapping[str, Waiting], done: Mapping[str, str], key: str, kind: Literal["approval", "result"]
) -> Waiting:
    """What waits under `key`. Raises, naming what is pending: `AlreadyDecided`, `NotPending`."""
    pending = sorted(waiting)
    found = waiting.get(key)
    if found is None and key in done:
        raise AlreadyDecided(f"call {key!r} is already decided: {done[key]}")
    if found is None:
        near = [full for full in pending if full.rsplit("-", 1)[0] == key]
        hint = f"; did you mean {near[0]!r}? The whole key is needed, it is bound to what was shown" if near else ""
        raise NotPending(f"no call {key!r} waits{hint}. Pending: {pending}")
    if (found.kind == "approval") != (kind == "approval"):
        verb = "approve or deny" if found.kind == "approval" else "complete"
        raise NotPending(f"call {key!r} waits for {found.kind}: use {verb}. Pending: {pending}")
    return found


def check_vote(waiting: Waiting, by: str, args: Any) -> None:
    """Raise `NotAllowed` or `InvalidRequest` where this person may not decide this, or not so."""
    terms = waiting.terms
    if terms.approvers and by not in terms.approvers:
        raise NotAllowed(f"{by!r} may not decide call {waiting.call.key!r}. Approvers: {terms.approvers}")
    if terms.quorum > 1 and not by:
        raise InvalidRequest(
            f"call {waiting.call.key!r} needs {terms.quorum} different people: say who you are in 'by'"
        )
    if terms.forbid_self and by and by == waiting.edited_by:
        raise NotAllowed(f"{by!r} edited the arguments of call {waiting.call.key!r} and may not approve them")
    if args is not None and not terms.allow_edit:
        raise NotAllowed(
            f"the arguments of call {waiting.call.key!r} may not be edited: its policy has allow_edit=False"
        )


def approve(waiting: Waiting, by: str, reason: str, edited: PlannedCall | None) -> Decided:
    """Count a vote; the last one that is needed approves. Edited arguments make the votes before them void."""
    if edited is not None:
        waiting.call, waiting.edited_by, waiting.votes = edited, by, []
    if by not in waiting.votes or not by:
        waiting.votes.append(by)
    if waiting.needed:
        return Decided(call=waiting.call.key, outcome="voted", needed=waiting.needed)
    waiting.resolution = Resolution("approved", reason, call=waiting.call)
    return Decided(call=waiting.call.key, outcome="approved")


def deny(waiting: Waiting, reason: str) -> Decided:
    """One denial is enough."""
    waiting.resolution = Resolution("denied", reason)
    return Decided(call=waiting.call.key, outcome="denied")


def complete(waiting: Waiting, result: Any, error: str | None) -> Decided:
    """The result, or the error, of a call that was made outside."""
    waiting.resolution = Resolution("failed", error) if error is not None else Resolution("completed", result=result)
    return Decided(call=waiting.call.key, outcome="completed")


def expired_text(waiting: Waiting) -> str:
    """What the model is told where nobody decided in time."""
    what = "result" if waiting.kind != "approval" else "decision"
    return f"No {what} came in time, so the call was not made. This is not a denial: nobody answered."


def _after(now: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else now + timedelta(seconds=seconds)
