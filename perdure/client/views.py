"""What a client sees of a run: at one look, and in a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from perdure.contracts import Json, StatusView, TurnView

RunStatus = Literal[
    "running", "completed", "failed", "canceled", "terminated", "timed_out", "continued_as_new", "paused"
]
"""Temporal's own states of a workflow."""


@dataclass(frozen=True)
class LiveText:
    """What a running activity says right now: a model's partial answer or a tool's progress. Not in history."""

    activity: str
    """`model_request`, or `tool:` and the tool's name."""
    attempt: int
    """The latest attempt: its text replaces what another one said."""
    text: str
    """Empty until this attempt has said something."""
    id: str = ""
    """Tells activities of the same name apart."""


@dataclass(frozen=True)
class RunSummary:
    """A run as the server knows it; needs no worker."""

    id: str
    agent: str
    """Empty until a worker has begun the run, and where the search attribute `AgentName` isn't registered."""
    status: str
    """`running`, `completed`, `failed`, `canceled`, `terminated`, `timed_out`, …"""
    started: datetime
    closed: datetime | None
    task_queue: str


@dataclass(frozen=True)
class Progress:
    """One look at a run that is followed."""

    entries: list[Json]
    """Entries of the transcript that are new since the last look."""
    live: list[LiveText]
    """What its activities say, each that is under way: nothing of what is in `entries` already."""
    answered: bool
    """Whether a worker answered. While none does there are no new entries."""
    why: str = ""
    """Why none did, and what to do, in one line; where one did, which activity failed and is tried again."""
    start: int = 0
    """The index of the first of the entries. There is a gap before it only where old entries were dropped."""
    status: StatusView | None = None
    """The run's state and what waits, where it may have changed: the entries are at least as far."""
    turns: list[TurnView] = field(default_factory=list[TurnView])
    """Turns that have begun, ended or changed since the last look; at the first look, the latest one."""
    unserved: list[str] = field(default_factory=list[str])
    """What the run waits for that nobody serves, and what to do, a line each: `RunHandle.unserved()`, asked now and
    then."""

    @property
    def next(self) -> int:
        """Where to resume: `follow(start=…)`."""
        return self.start + len(self.entries)
