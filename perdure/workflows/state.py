"""The state of one run: the only mutable thing of the workflow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import (
        CallOutcome,
        Fault,
        Json,
        Limits,
        Message,
        PlannedCall,
        Report,
        RetryState,
        RunPlan,
        RunRequest,
        Step,
        TurnView,
        Usage,
        cut,
    )
    from perdure.workflows.budget import Reached
    from perdure.workflows.log import Log
    from perdure.workflows.transcript import Transcript
    from perdure.workflows.waits import Waiting

MAX_REJECTED = 50
MAX_REJECTED_TEXT = 2000


@dataclass
class StepInProgress:
    """A step whose response is recorded and whose calls aren't answered yet."""

    step: Step
    outcomes: dict[str, CallOutcome] = field(default_factory=lambda: {})
    """By the key of the call as it was planned."""
    waits: list[Waiting] = field(default_factory=lambda: [])
    """What waited when the run continued as new."""


@dataclass
class Below:
    """The run of another agent that a call has started and waits for."""

    run: str
    """Its workflow id."""
    room: Limits
    """What it may use, which is held back as long as it is open."""
    pending: list[Json] = field(default_factory=lambda: [])
    """What waits in it, as it has told."""
    works: bool = False
    """Something waits in it, and something else is being done."""
    usage: Usage = field(default_factory=Usage)
    """What it has used, as far as is known."""
    began: bool = False


@dataclass
class RunState:
    """Everything a run knows. Handlers read it before `run` has begun, so each field has a value from the start."""

    request: RunRequest | None = None
    plan: RunPlan | None = None
    limits: Limits = field(default_factory=Limits)
    model: str | None = None
    """The key of the model that the last request went to; `None` = the agent's own."""
    next_model: str | None = None
    """The key of the model that the next request goes to."""
    early: int = 0
    """Handlers that wait for the plan: the run begins when they have been heard."""
    transcript: Transcript = field(default_factory=Transcript)
    usage: Usage = field(default_factory=Usage)
    retries: RetryState = field(default_factory=RetryState)
    context_tokens: int = 0
    """What the last model request had and gave; 0 = not known, or compacted since."""
    compact_floor: int | None = 0
    """No compaction up to so many tokens, since the last one was no use; `None`: the next request will show."""
    started: datetime | None = None
    """When the first run of the chain began."""
    waited: timedelta = timedelta(0)
    """Time that doesn't count for the deadlines, as far as it is over."""
    turn_waited: timedelta = timedelta(0)
    """What it was when the turn began."""
    waiting_since: datetime | None = None
    """Since when the run waits for people, where that doesn't count."""
    check: Callable[[], Reached | None] | None = None
    """What the run waits at a limit with: finds the limit, until it is raised."""
    limits_asked: int = 0
    counted_input: int = 0
    """Input tokens of the next request, where they were more than a request may have."""
    chain: int = 0
    """How often the run has continued as new."""
    turn: int = 0
    step: int = 0
    in_turn: bool = False
    refused_message: str = ""
    """Why the running turn's message can't be given to the model: the turn ends before it has begun."""
    turn_usage: Usage = field(default_factory=Usage)
    """What had been used when the turn began."""
    current: StepInProgress | None = None
    queue: list[Message] = field(default_factory=lambda: [])
    turns: list[TurnView] = field(default_factory=lambda: [])
    """The latest turns; the last one may be running."""
    failure: Fault | None = None
    """What the last turn of a session failed with."""
    interrupt: Fault | None = None
    """Who wants the running turn to end."""
    stopping: Literal["", "interrupted", "deadline"] = ""
    """Why the running turn is being cancelled, where the run isn't."""
    closing: bool = False
    idle_since: datetime | None = None
    rolling: bool = False
    """The run is about to continue as new: whoever sends something now is asked to send it again."""
    progressed: bool = False
    """Something was done since this run of the chain began."""
    activities: int = 0
    """Activities that are open."""
    endpoints: list[str] = field(default_factory=lambda: [])
    """Nexus endpoints that are known to be there."""
    done: bool = False
    shown_status: str = ""
    shown_waiting: list[str] = field(default_factory=lambda: [])
    """What the search attributes say."""
    commanded_at: datetime | None = None
    """When what waits was last shown by a command."""
    revision: int = 0
    """How often the current details were set."""
    open_calls: dict[str, PlannedCall] = field(default_factory=lambda: {})
    waiting: dict[str, Waiting] = field(default_factory=lambda: {})
    below: dict[str, Below] = field(default_factory=lambda: {})
    """By the key of the call: the runs of other agents that are open."""
    reported: str = ""
    """The digest of what the run above was told last, or is about to be; empty = nothing yet."""
    to_report: Report | None = None
    reporting: asyncio.Task[None] | None = None
    decided: dict[str, str] = field(default_factory=lambda: {})
    """By call key: how it was decided. For those who come later."""
    audit: Log = field(default_factory=Log)
    rejected: list[Json] = field(default_factory=lambda: [])
    rejected_count: int = 0
    refused: dict[str, int] = field(default_factory=lambda: {})
    """By call key: how many decisions that came to nothing are in the audit."""
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """For the tool calls of a step that may be open at once."""
    failing: bool = False
    """A call has ended the run: nothing waits any more, and what hasn't begun doesn't."""
    leaving: int = 0
    """Calls that wait no more, while those who came too late are told so."""
    checking: int = 0
    """Bytes of edited arguments and results that are being checked."""
    notices: list[asyncio.Task[None]] = field(default_factory=lambda: [])
    told: int = 0
    """Notifications made."""
    handed_over: bool = False
    """Another agent began the run, whose limits still bound those that may be set."""
    bound: dict[str, str] = field(default_factory=lambda: {})
    """By server: the queue of the worker that holds the run's session with it."""
    unsent: list[Json] = field(default_factory=lambda: [])

    @property
    def agent(self) -> str:
        """The agent's name, as asked for."""
        return self.request.agent if self.request else ""

    @property
    def is_session(self) -> bool:
        """Whether it stays open for further messages."""
        return self.request is not None and self.request.session is not None

    @property
    def something_waits(self) -> bool:
        """Whether something waits for people, here or in a run below."""
        return bool(self.waiting) or any(below.pending for below in self.below.values())

    @property
    def only_waits(self) -> bool:
        """Whether something waits for people, and no call runs but those that wait themselves."""
        return self.something_waits and not any(self._works(key) for key in self.open_calls)

    def _works(self, key: str) -> bool:
        below = self.below.get(key)
        return below is None or not below.pending or below.works

    @property
    def in_order(self) -> list[Waiting]:
        """What waits, in the order of the calls."""
        return sorted(self.waiting.values(), key=lambda waiting: waiting.place)

    @property
    def started_by(self) -> str:
        """Who started the run, as whoever started it says."""
        return self.request.by if self.request else ""

    def note(self, event: str, call: PlannedCall, at: datetime, **more: Any) -> None:
        """Add a row to the audit."""
        row = {"at": at.isoformat(), "event": event, "call": call.key, "tool": call.tool}
        self.audit.append(row | {name: value for name, value in more.items() if value not in (None, "", [])})

    def reject(self, name: str, reason: str, at: datetime) -> None:
        """Keep that a signal couldn't be used: the last 50, each cut."""
        self.rejected_count += 1
        self.rejected.append({"signal": name, "reason": cut(reason, MAX_REJECTED_TEXT), "at": at.isoformat()})
        del self.rejected[:-MAX_REJECTED]

    def keep_unsent(self, row: Json) -> None:
        """Keep that a notification couldn't be sent: the last 50."""
        self.unsent.append(row)
        del self.unsent[:-MAX_REJECTED]
