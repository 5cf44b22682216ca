"""What a run takes with it when it continues as new: everything it knows, so that nobody notices."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from perdure.contracts.answered import Fault, Mark, TurnView, Usage
from perdure.contracts.base import Compact, Json
from perdure.contracts.calls import ApprovalTerms, CallOutcome, PlannedCall
from perdure.contracts.deciding import Kind
from perdure.contracts.sent import Limits, WhenBusy
from perdure.contracts.steps import RetryState, RunPlan, Step


class Message(Compact):
    """A message that waits for its turn."""

    id: str
    at: datetime
    content: str | list[Any] = ""
    when_busy: WhenBusy = "queue"
    by: str = ""
    checked: bool = False
    problem: str = ""
    """Why it can't be given to a model, once it was checked."""


class CarriedWait(Compact):
    """A call that waits. Times are absolute: continuing doesn't start a clock anew."""

    origin: str
    """Its key as it was planned."""
    call: PlannedCall
    kind: Kind
    asked_at: datetime
    terms: ApprovalTerms
    expires_at: datetime | None = None
    reminders: list[datetime] = []
    level: int = 0
    votes: list[str] = []
    edited_by: str = ""


class CarriedStep(Compact):
    """The step of a turn that waits: its plan, without the response, and what its calls have come to so far."""

    step: Step
    outcomes: list[CallOutcome] = []
    waits: list[CarriedWait] = []


class Packed(Compact):
    """Where a log is among the packed arguments."""

    base: Mark = Mark()
    """The place before its first row: rows before it were dropped."""
    length: int = 0
    digest: str = ""
    covered: Mark = Mark()
    """The place up to which the latest note stands for what was."""
    note: int = 0
    """The number of that note; 0 = there is none."""
    payloads: int = 0


class Carry(Compact):
    """The second argument of a run that continues; the third and further ones are its packed transcript and audit."""

    plan: RunPlan
    limits: Limits
    model: str | None = None
    next_model: str | None = None
    started: datetime
    waited: timedelta = timedelta(0)
    """Time that doesn't count for the deadlines, as far as it is over."""
    turn_waited: timedelta = timedelta(0)
    """What it was when the turn began."""
    waiting_since: datetime | None = None
    """Since when the run waits for people, where that doesn't count."""
    limit: CarriedWait | None = None
    """The limit that the run waits for."""
    limits_asked: int = 0
    counted_input: int = 0
    turn: int = 0
    step: int = 0
    usage: Usage = Usage()
    retries: RetryState = RetryState()
    queue: list[Message] = []
    turns: list[TurnView] = []
    current: CarriedStep | None = None
    in_turn: bool = False
    turn_usage: Usage = Usage()
    """What had been used when the turn began."""
    closing: bool = False
    idle_since: datetime | None = None
    context_tokens: int = 0
    compact_floor: int | None = None
    transcript: Packed = Packed()
    told: Mark = Mark()
    """The place in the transcript that a worker was last told of."""
    audit: Packed = Packed()
    decided: dict[str, str] = {}
    refused: dict[str, int] = {}
    rejected: list[Json] = []
    rejected_count: int = 0
    unsent: list[Json] = []
    notified: int = 0
    reported: str = ""
    handed_over: bool = False
    bound: dict[str, str] = {}
    failure: Fault | None = None
    shown_status: str = ""
    shown_waiting: list[str] = []
    revision: int = 0
    chain: int = 0
    """How often the run has continued as new."""
