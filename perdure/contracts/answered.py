"""What a run answers: its result, its queries, its updates."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from perdure.contracts.base import Compact, Json, Recorded, is_empty
from perdure.contracts.sent import MAX_NAME, Limits


class Usage(Compact):
    """Tokens, requests and cost, of a step or added up. Fields as in Pydantic AI's `RunUsage`."""

    requests: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost: Decimal | None = None
    """US dollars; absent = unknown, which isn't zero."""
    unpriced_requests: int = 0
    """Requests whose cost is unknown."""
    more: dict[str, float] = {}
    """Every other counter of Pydantic AI's usage that isn't zero, by its name."""
    details: dict[str, int] = {}

    @model_serializer(mode="wrap")
    def _without_empty(self, handler: SerializerFunctionWrapHandler) -> Json:
        return {name: value for name, value in handler(self).items() if not is_empty(value) and value not in (0, 0.0)}


class Fault(Compact):
    """Why a run or a turn ends, as data: what is raised loses its details at the activity boundary."""

    type: str
    message: str = ""
    details: list[Any] = []


class Output(Recorded):
    """A run's output, as JSON, with the name of its type where the agent has several."""

    value: Any = None
    type: str | None = None


class TurnView(Compact):
    """A turn, or a message that hasn't had its turn yet: what `send` and the query `turn` answer."""

    turn: int = 0
    """Counted from 1; absent = it hasn't begun."""
    state: Literal["queued", "running", "done", "failed", "interrupted"]
    messages: list[str] = []
    """Ids of the messages that began it and joined it."""
    output: Output | None = None
    left_out: int = 0
    """Bytes of the output, where it is no longer kept here: the transcript has it."""
    error: Fault | None = None
    """Of a failed turn: why. Of an interrupted one: by whom."""
    usage: Usage = Usage()
    began: str = ""
    ended: str = ""
    """Workflow time, ISO 8601."""


class RunResult(Recorded):
    """What the workflow returns."""

    output: Any = None
    output_type: str | None = None
    usage: Usage = Usage()
    failure: Fault | None = None
    """Why the last turn has no output, where it failed or was interrupted. The output is then that of an earlier turn,
    where there was one."""
    turns: int = 1
    steps: int = 0
    audit: list[Json] = []


class ReportedRow(Recorded):
    """A row of `Report`: what of it is used, and how much of that is taken."""

    call: str = Field(max_length=MAX_NAME)
    kind: Literal["approval", "external", "question", "limit"]
    tool: str = Field(default="", max_length=MAX_NAME)
    workflow_id: str = Field(max_length=1000)
    """The run in which it waits."""
    approvers: list[str] = Field(default=[], max_length=20)
    votes: list[str] = Field(default=[], max_length=20)


class Report(Recorded):
    """The argument of the signal `report`, with which a run tells the one that started it how it stands."""

    call: str
    """The key of the call that it runs."""
    pending: list[Json] = []
    """What waits in it and in the runs it has started: rows of the query `pending`, cut, with their `workflow_id`."""
    works: bool = False
    """Something waits, and something else is being done."""
    usage: Usage = Usage()
    """What it has used so far."""


class Heard(Recorded):
    """The answer of the updates `interrupt` and `close`: the state the run is in then."""

    state: Literal["running", "waiting", "idle", "closing", "done"]


class Decided(Recorded):
    """The answer of an update that decided something."""

    call: str
    """The key from now on: edited arguments are shown under another one."""
    outcome: Literal["approved", "denied", "completed", "voted", "edited"]
    needed: int = 0
    """Votes that are still needed."""


class NewLimits(Recorded):
    """The answer of the update `set_limits`."""

    limits: Limits
    """All of them, as they are now."""
    waits: list[str] = []
    """Keys of limits that are still reached, so that the run still waits."""


class NewModel(Recorded):
    """The answer of the update `set_model`."""

    model: str | None
    id: str = ""
    """The model's own id, as far as it is known."""


class StatusView(Recorded):
    """The answer of the query `status`."""

    state: Literal["running", "waiting", "idle", "closing", "done"]
    agent: str
    version: str
    model: str
    """The id of the model that the next request goes to."""
    turn: int
    step: int
    usage: Usage
    limits: Limits = Limits()
    open_calls: list[Json] = []
    pending: list[Json] = []
    session: bool = False
    """It stays open for further messages."""
    queue: int = 0
    """Messages that wait for their turn."""
    rejected: list[Json] = []
    """Signals that couldn't be used, with the reason: the last 50."""
    rejected_count: int = 0
    warnings: list[str] = []
    """What was left out or failed without ending the run, a compaction among them."""
    unsent: list[Json] = []
    """Notifications that couldn't be sent, with the reason: the last 50."""


class Mark(Compact):
    """A place in the transcript: how many entries come before it and their digest."""

    length: int = 0
    digest: str = ""


class TranscriptPage(Recorded):
    """The answer of the query `transcript`: entries from `start` on, at least one where there is one."""

    start: int = 0
    """Not before `base.length`, whatever was asked for."""
    base: Mark = Mark()
    """The place before the first entry that the workflow still has: a note stands for those before it."""
    entries: list[Json] = []
    total: int = 0
    digest: str = ""
    """Digest of the whole transcript."""
