"""What waits for a person or for another system, and what has arrived for it. Pure, but for times that are given."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import (
        ApprovalTerms,
        Complete,
        Decide,
        Decided,
        Json,
        Kind,
        PlannedCall,
        VerbName,
        args_digest,
    )
    from perdure.errors import PerdureError

Via = Literal["update", "signal"]


@dataclass
class Resolution:
    """How a call that waited may go on."""

    outcome: Literal["approved", "denied", "expired", "completed", "failed", "cancelled", "superseded", "raised"]
    reason: str = ""
    result: Any = None
    by: str = ""
    verified: bool = False


@dataclass
class Arrival:
    """A decision that has arrived and is looked at in its turn."""

    verb: VerbName
    sent: Decide | Complete
    via: Via
    at: datetime
    answer: Decided | PerdureError | None = None
    heard: bool = False
    """An update has taken its answer."""

    @property
    def is_open(self) -> bool:
        """Whether somebody waits who hasn't heard the answer."""
        return self.via == "update" and not self.heard


@dataclass(frozen=True)
class Who:
    """Who decides: as claimed, or as verified."""

    name: str
    groups: tuple[str, ...] = ()
    verified: bool = False

    def is_among(self, approvers: list[str]) -> bool:
        """Whether one of the names or groups is this person's; no approvers = anyone."""
        groups = [f"group:{group}" for group in self.groups]
        by_name = self.name in approvers and not self.name.startswith("group:")
        return not approvers or by_name or any(group in approvers for group in groups)

    def is_person(self, name: str) -> bool:
        """Whether this is who that name means: `Ann` is `ann`."""
        return bool(name) and self.name.casefold() == name.casefold()


@dataclass
class Waiting:
    """A call that waits, until it has a resolution."""

    call: PlannedCall
    kind: Kind
    asked_at: datetime
    terms: ApprovalTerms
    origin: str = ""
    """Its key as it was planned: the outcome is of that one."""
    expires_at: datetime | None = None
    reminders: list[datetime] = field(default_factory=list[datetime])
    """When to remind, those to come."""
    level: int = 0
    """How often it was escalated."""
    votes: list[str] = field(default_factory=list[str])
    edited_by: str = ""
    arrived: deque[Arrival] = field(default_factory=deque[Arrival])
    """Decisions that nobody has looked at yet, in the order of their arrival."""
    resolution: Resolution | None = None
    parked: bool = False
    """Nothing is being done about it: it only waits."""

    @property
    def is_at_rest(self) -> bool:
        """Whether it waits, and nothing has come for it."""
        return self.parked and not self.arrived and self.resolution is None

    @property
    def key(self) -> str:
        """What a decision is addressed to. An edit changes it: it is bound to the arguments that are shown."""
        return self.call.key

    @property
    def place(self) -> list[int]:
        """Step and number of the call; a limit comes before any."""
        if self.kind == "limit":
            return []
        return [int(number) for number in self.key.partition("-")[0].partition("+")[0].split(".")]

    @property
    def needed(self) -> int:
        """Votes that are still needed."""
        return max(0, self.terms.quorum - len(self.votes))

    @property
    def next_moment(self) -> datetime | None:
        """When something happens by itself: a reminder or the expiry."""
        return min([*self.reminders[:1], *([self.expires_at] if self.expires_at else [])], default=None)

    def view(self) -> Json:
        """One row of the query `pending`."""
        row: Json = {
            "call": self.key,
            "kind": self.kind,
            "tool": self.call.tool,
            "tool_call_id": self.call.tool_call_id,
            "args": self.call.args,
            "digest": args_digest(self.call.args),
            "metadata": self.call.metadata,
            "asked_at": self.asked_at.isoformat(),
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
        }
        if self.kind == "limit":
            row |= {"approvers": self.terms.approvers}
        if self.kind == "approval":
            row |= {"approvers": self.terms.approvers, "needed": self.needed, "votes": list(self.votes)}
            row |= {"rule": self.terms.rule, "allow_edit": self.terms.allow_edit}
        return row


def asked(call: PlannedCall, origin: str, now: datetime) -> Waiting:
    """A call that begins to wait."""
    kind: Kind = "approval" if call.action == "approve" else "question" if call.action == "question" else "external"
    waits_outside = ApprovalTerms(expires_after=call.wait)
    terms = call.approval or ApprovalTerms() if kind == "approval" else waits_outside
    waiting = Waiting(call, kind, now, terms, origin)
    _start_clock(waiting, now)
    return waiting


def at_limit(call: PlannedCall, terms: ApprovalTerms, now: datetime) -> Waiting:
    """A run that begins to wait until a limit is raised; `call` says which one."""
    waiting = Waiting(call, "limit", now, terms, call.key)
    _start_clock(waiting, now)
    return waiting


def of_limit(waiting: Mapping[str, Waiting]) -> Waiting | None:
    """The limit that the run waits for, if it does."""
    return next((one for one in waiting.values() if one.kind == "limit"), None)


def escalated(waiting: Waiting, now: datetime) -> bool:
    """Hand what has expired to the next approvers, if there are any: their time begins now, votes begin anew."""
    if waiting.terms.on_expiry != "escalate" or waiting.terms.escalate_to is None:
        return False
    waiting.terms = waiting.terms.escalate_to
    waiting.level += 1
    waiting.votes = []
    _start_clock(waiting, now)
    return True


def _start_clock(waiting: Waiting, now: datetime) -> None:
    after = waiting.terms.expires_after
    waiting.expires_at = None if after is None else now + timedelta(seconds=after)
    waiting.reminders = [now + timedelta(seconds=seconds) for seconds in sorted(waiting.terms.reminders)]
