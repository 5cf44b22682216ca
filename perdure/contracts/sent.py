"""What people and programs send: the start of a run, and what its verbs and queries take."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from perdure.contracts.base import Json, Recorded, Sent
from perdure.contracts.declared import Declared

MAX_NAME = 200
MAX_REASON = 10_000
MAX_TOKEN = 8_000
"""Characters of what people send: a name or key, a reason, a token."""


class Limits(Declared):
    """What a run may use, all its turns together; fields that begin with `turn_` are for each turn. `None` = no limit.

    See `docs/budgets.md`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    requests: int | None = Field(default=None, ge=0)
    """Model requests."""
    tool_calls: int | None = Field(default=None, ge=0)
    """Tool calls, counted before a step's calls start: a step that would go over runs none of them."""
    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    total_tokens: int | None = Field(default=None, ge=0)
    request_input_tokens: int | None = Field(default=None, ge=0)
    """Input tokens of one model request, checked before it is sent where the model can count, else after."""
    cost: Decimal | None = Field(default=None, ge=0)
    """US dollars, as priced by Pydantic AI."""
    unpriced_requests: int | None = Field(default=0, ge=0)
    """Requests whose cost is unknown, counted while `cost` or `turn_cost` is set. `None`: such a cost is ignored."""
    deadline: timedelta | None = Field(default=None, gt=timedelta(0), le=timedelta(days=36_500))
    """Time from the start of the run, by workflow time."""
    turn_requests: int | None = Field(default=50, ge=0)
    """Model requests of a turn. The default is Pydantic AI's own of a run (`UsageLimits.request_limit`)."""
    turn_tool_calls: int | None = Field(default=None, ge=0)
    turn_total_tokens: int | None = Field(default=None, ge=0)
    turn_cost: Decimal | None = Field(default=None, ge=0)
    turn_deadline: timedelta | None = Field(default=None, gt=timedelta(0), le=timedelta(days=36_500))
    """Time from the beginning of the turn, by workflow time."""

    def given(self) -> Json:
        """The fields that were set, as JSON: what `set_limits` changes, and what a token for it is made for."""
        return self.model_dump(mode="json", exclude_unset=True)


class Session(Sent):
    """Keeps a run open for further messages: `{}`, or `{"idle_timeout": "PT1H"}`."""

    idle_timeout: timedelta | None = Field(default=None, gt=timedelta(0), le=timedelta(days=36_500))
    """Closes the session when nothing has been going on for so long. `None` = it stays open until `close`."""


class Within(Recorded):
    """Of a run that another one started: what it has of that."""

    call: str
    """The key of the call that it runs."""
    depth: int = Field(ge=1)
    """How many runs are above it."""
    room: Limits
    """What it may use at most, its own limits aside; every field is set."""


class RunRequest(Sent):
    """The one argument of a start: `{"agent": "support", "prompt": "…"}` is enough."""

    agent: str
    prompt: str | list[Any] | None = None
    """Text, or a list of text and Pydantic AI's content parts as JSON (`{"kind": "image-url", "url": "…"}`). May be
    absent in a session: then it waits for its first message."""
    session: Session | None = None
    """With it the run stays open after its answer, for `send`. Absent: it ends when every message has its answer."""
    params: Any = None
    """What the agent's `deps` factory gets, checked against its `params_type`. In history: no secrets."""
    model: str | None = None
    """A key of the agent's `models`; absent = the agent's own model."""
    limits: Limits | None = None
    """Only fields that are set count, and they may only lower the agent's."""
    by: str = Field(default="", max_length=MAX_NAME)
    """Who starts the run, as the program that starts it says. An approval with `forbid_self` refuses this name."""
    metadata: dict[str, Any] = {}
    """Free JSON, given to tools as `current_call().metadata`."""
    within: Within | None = None
    """Set by a run that starts another one. Everybody else leaves it out."""

    @model_validator(mode="after")
    def _has_a_beginning(self) -> Self:
        if self.prompt is None and self.session is None:
            raise ValueError("a prompt is needed, but for a session, which may wait for its first message")
        return self


WhenBusy = Literal["queue", "steer", "interrupt"]


class Send(Sent):
    """The argument of `send`: a message to the agent."""

    content: str | list[Any]
    """As the prompt of a start."""
    when_busy: WhenBusy = "queue"
    """What becomes of it while a turn runs. `queue`: it waits for its own turn; `steer`: it joins the running turn
    before its next model request; `interrupt`: it ends the running turn and is next."""
    id: str = Field(default="", max_length=MAX_NAME)
    """Whoever sends makes it up: a repeat of it changes nothing. Absent: made up, and each repeat is a new message."""
    by: str = Field(default="", max_length=MAX_NAME)
    """Who sends it: a claim, kept in the transcript."""


class Steer(Sent):
    """The argument of `interrupt` and `close`: `{}` is enough."""

    by: str = Field(default="", max_length=MAX_NAME)
    reason: str = Field(default="", max_length=MAX_REASON)


class SetLimits(Sent):
    """The argument of `set_limits`."""

    limits: Limits
    """Only fields that are there count: absolute values, what was used before included; null = no limit."""
    by: str = Field(default="", max_length=MAX_NAME)
    """Who sets them: a claim, and marked so. With a verifier it may be left out, and the token must agree."""
    reason: str = Field(default="", max_length=MAX_REASON)
    token: str = Field(default="", max_length=MAX_TOKEN)
    """Shows who sets them, where the app has a verifier."""


class SetModel(Sent):
    """The argument of `set_model`."""

    model: str | None
    """A key of the agent's `models`; null = the agent's own model."""
    by: str = Field(default="", max_length=MAX_NAME)
    """Who sets it: a claim, kept in the audit."""


class TurnQuery(Sent):
    """The argument of the query `turn`, one of them; may be absent, then the latest turn is meant."""

    turn: int | None = Field(default=None, ge=1)
    message: str | None = Field(default=None, max_length=MAX_NAME)
    """The id of a message: the turn that it began, or joined."""


class Verb(Sent):
    """What every decision holds."""

    call: str = Field(max_length=MAX_NAME)
    """The whole key, as `pending` shows it."""
    by: str = Field(default="", max_length=MAX_NAME)
    """Who decides: a claim, and marked so. With a verifier it may be left out; if it is there, the token must agree."""
    token: str = Field(default="", max_length=MAX_TOKEN)
    """Shows who decides, where the app has a verifier. Recorded in history: see `docs/approvals.md`."""


class Decide(Verb):
    """The argument of `approve` and `deny`."""

    reason: str = Field(default="", max_length=MAX_REASON)
    args: dict[str, Any] | None = None
    """`approve` only: other arguments than those that were asked for, where the policy allows it."""


class Complete(Verb):
    """The argument of `complete`: the result of a call that is made outside."""

    result: Any = None
    """Any JSON, also null: then it has to be written."""
    error: str | None = Field(default=None, min_length=1, max_length=MAX_REASON)
    """What went wrong, instead of a result."""


class AuditQuery(Sent):
    """The argument of the query `audit`; may be absent."""

    start: int = Field(default=0, ge=0)
    """Rows that are left out. An answer has as many as fit; the last one is followed by an empty answer."""


class TranscriptQuery(Sent):
    """The argument of the query `transcript`; may be absent."""

    start: int = Field(default=0, ge=0)
    max_bytes: int = Field(default=1_500_000, ge=1, le=1_800_000)
    until: int = Field(default=0, ge=0)
    """For who needs the conversation as it is after so many entries: those that a note stands for by then are left out.
    0 = the whole transcript."""
