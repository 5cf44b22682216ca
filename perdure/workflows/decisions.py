"""What waits for a person or for another system, and who may decide it. Pure, but for times that are given.

A decision is bound to one call by its key and used once: the first valid one that arrives wins.
"""

from __future__ import annotations

import re
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
        TokenUse,
        VerbName,
        args_digest,
    )
    from perdure.errors import AlreadyDecided, InvalidRequest, NotAllowed, NotPending, PerdureError

Via = Literal["update", "signal"]


@dataclass
class Resolution:
    """How a call that waited may go on."""

    outcome: Literal["approved", "denied", "expired", "completed", "failed", "cancelled"]
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

    @property
    def key(self) -> str:
        """What a decision is addressed to. An edit changes it: it is bound to the arguments that are shown."""
        return self.call.key

    @property
    def place(self) -> list[int]:
        """Step and number of the call."""
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
        if self.kind == "approval":
            row |= {"approvers": self.terms.approvers, "needed": self.needed, "votes": list(self.votes)}
            row |= {"rule": self.terms.rule, "allow_edit": self.terms.allow_edit}
        return row


def asked(call: PlannedCall, now: datetime) -> Waiting:
    """A call that begins to wait."""
    kind: Kind = "approval" if call.action == "approve" else "question" if call.action == "question" else "external"
    waits_outside = ApprovalTerms(expires_after=call.wait)
    terms = call.approval or ApprovalTerms() if kind == "approval" else waits_outside
    waiting = Waiting(call, kind, now, terms)
    _start_clock(waiting, now)
    return waiting


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


def find(waiting: Mapping[str, Waiting], done: Mapping[str, str], key: str, verb: VerbName) -> Waiting:
    """What waits under `key`. Raises, naming what is pending: `AlreadyDecided`, `NotPending`."""
    pending = sorted(waiting)
    found = waiting.get(key)
    if found is None and key in done:
        raise AlreadyDecided(f"call {key!r} is already decided: {done[key]}")
    if found is None:
        near = [full for full in pending if re.split("[+-]", full)[0] == re.split("[+-]", key)[0]]
        hint = f"; did you mean {near[0]!r}? The whole key is needed, it is bound to what was shown" if near else ""
        raise NotPending(f"no call {key!r} waits{hint}. Pending: {pending}")
    if (found.kind == "approval") == (verb == "complete"):
        fitting = "approve or deny" if found.kind == "approval" else "complete"
        raise NotPending(f"call {key!r} waits for {found.kind}: use {fitting}. Pending: {pending}")
    return found


def check_right(waiting: Waiting, who: Who, arrival: Arrival, started_by: str) -> None:
    """Raise `NotAllowed` or `InvalidRequest` where this person may not decide this, or not so."""
    terms, key = waiting.terms, waiting.key
    if not who.is_among(terms.approvers):
        raise NotAllowed(f"{who.name!r} may not decide call {key!r}. Approvers: {terms.approvers}")
    if arrival.verb != "approve":
        return
    if not who.name and (terms.quorum > 1 or terms.forbid_self):
        people = f"{terms.quorum} different people" if terms.quorum > 1 else "somebody else than who asked"
        raise InvalidRequest(f"call {key!r} needs {people}: say who you are in 'by'")
    if terms.forbid_self and who.is_person(started_by):
        raise NotAllowed(f"{who.name!r} started the run and may not approve call {key!r}")
    if terms.forbid_self and who.is_person(waiting.edited_by):
        raise NotAllowed(f"{who.name!r} edited the arguments of call {key!r} and may not approve them")
    if isinstance(arrival.sent, Decide) and arrival.sent.args is not None and not terms.allow_edit:
        raise NotAllowed(f"the arguments of call {key!r} may not be edited: its policy has allow_edit=False")


def edit(waiting: Waiting, who: Who, edited: PlannedCall) -> None:
    """Other arguments are shown from now on, under another key. Votes before are void: they meant what was shown."""
    waiting.call, waiting.edited_by, waiting.votes = edited, who.name, []


def approve(waiting: Waiting, who: Who, reason: str) -> Decided:
    """Count a vote; the last one that is needed approves. With `forbid_self` the vote of who edited doesn't count."""
    if waiting.terms.forbid_self and who.is_person(waiting.edited_by):
        return Decided(call=waiting.key, outcome="edited", needed=waiting.needed)
    if who.name not in waiting.votes:
        waiting.votes.append(who.name)
    if waiting.needed:
        return Decided(call=waiting.key, outcome="voted", needed=waiting.needed)
    waiting.resolution = Resolution("approved", reason, by=who.name, verified=who.verified)
    return Decided(call=waiting.key, outcome="approved")


def deny(waiting: Waiting, who: Who, reason: str) -> Decided:
    """One denial is enough."""
    waiting.resolution = Resolution("denied", reason, by=who.name, verified=who.verified)
    return Decided(call=waiting.key, outcome="denied")


def complete(waiting: Waiting, who: Who, sent: Complete) -> Decided:
    """The result, or the error, of a call that was made outside."""
    outcome: Literal["failed", "completed"] = "completed" if sent.error is None else "failed"
    waiting.resolution = Resolution(outcome, sent.error or "", sent.result, who.name, who.verified)
    return Decided(call=waiting.key, outcome="completed")


def token_use(waiting: Waiting, arrival: Arrival, workflow_id: str) -> TokenUse:
    """What a token that comes with a decision has to be made for."""
    about: Any = waiting.call.args
    if isinstance(arrival.sent, Complete):
        error = arrival.sent.error
        about = {"result": arrival.sent.result} if error is None else {"error": error}
    elif arrival.sent.args is not None:
        about = arrival.sent.args
    return TokenUse(
        workflow_id=workflow_id,
        call=waiting.key,
        decision=arrival.verb,
        digest=args_digest(about),
        at=arrival.at.isoformat(),
    )


def expired_text(waiting: Waiting) -> str:
    """What the model is told where nobody decided in time."""
    if waiting.kind == "approval":
        return "No decision came in time, so the call was not made. This is not a denial: nobody answered."
    return "No result came in time. The call may still be made outside: check before you repeat it."
