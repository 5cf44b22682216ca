"""What is written to history and sent over the wire, as Pydantic models.

Names are wire format: they only ever gain optional fields. Models in history keep fields they don't know
(`extra="allow"`), so that a worker of an older version drops nothing in a rolling deploy; models of what people send
refuse them (`extra="forbid"`), so that a typo is an error and not a run that ignores it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
)
from pydantic_core import to_json

WORKFLOW_TYPE = "AgentWorkflow"
"""The one workflow type, for every agent."""
TASK_QUEUE = "perdure"
"""The task queue of workers and clients that name none."""
TOOL_ACTIVITY_PREFIX = "tool:"
"""A tool call's activity type is this and the tool's name."""

Json = dict[str, Any]
"""A JSON object that is carried, never looked into."""

SEARCH_ATTRIBUTES = ("AgentName", "AgentStatus")
"""The search attributes that a run sets, of the type Keyword."""
MAY_HAVE_RUN = "It may or may not have run. Check before you repeat it."
"""What the model is told of a call whose attempt was lost."""
MAX_TEXT = 20_000
"""Characters of an error in history."""
MAX_DETAILS = 100_000
"""Bytes of the details of an error in history."""
MAX_PAYLOAD = 1_500_000
"""Bytes of one payload that perdure writes. Temporal refuses 2 MB, summed over a command's payloads."""


def canonical(value: Any) -> bytes:
    """The one way to write `value` (JSON) as bytes: sorted keys, no spaces, UTF-8. Runs anywhere."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def payload_size(value: Any) -> int:
    """Bytes of `value` (JSON or a model) as a payload."""
    return len(to_json(value))


def validation_problems(error: ValueError, root: str) -> str:
    """What a Pydantic `ValidationError` says, in one line: `root.field: message; …`."""
    if not isinstance(error, ValidationError):
        return f"{root}: {error}"
    rows = error.errors(include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, (root, *row['loc'])))}: {row['msg']}" for row in rows[:10])


def cut(text: str, limit: int = MAX_TEXT) -> str:
    """`text`, cut to `limit` characters with a note of how much is missing."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"


def bounded_details(details: Sequence[Any]) -> list[Any]:
    """The details of a failure, or none where they are too large or can't be written: a failure must always fit."""
    try:
        return list(details) if payload_size(list(details)) <= MAX_DETAILS else []
    except ValueError:
        return []


def chain_digest(digest: str, entry: Json) -> str:
    """The digest of a transcript that had `digest` and got `entry`: chained SHA-256, in hex."""
    return hashlib.sha256(digest.encode() + canonical(entry)).hexdigest()


def _is_empty(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, str | list | dict) and not value)


class Sent(BaseModel):
    """What a person or program sends. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Recorded(BaseModel):
    """What is in history or answered. Unknown fields are kept."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Compact(Recorded):
    """What is in history many times: empty fields aren't written. So no field may default to anything that is empty
    and mean something else by it."""

    @model_serializer(mode="wrap")
    def _without_empty(self, handler: SerializerFunctionWrapHandler) -> Json:
        return {name: value for name, value in handler(self).items() if not _is_empty(value)}


class Limits(BaseModel):
    """What a run may use. `None` = no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    requests: int | None = Field(default=50, ge=0)
    """Model requests. The default is Pydantic AI's own (`UsageLimits.request_limit`)."""
    tool_calls: int | None = Field(default=None, ge=0)
    """Tool calls, counted before a step's calls start: a step that would go over runs none of them."""
    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    total_tokens: int | None = Field(default=None, ge=0)
    request_input_tokens: int | None = Field(default=None, ge=0)
    """Input tokens of one model request, checked before it is sent where the model can count, else after."""
    cost: Decimal | None = Field(default=None, ge=0)
    """US dollars, as priced by Pydantic AI. A request whose cost is unknown fails the run while this is set."""
    deadline: timedelta | None = Field(default=None, gt=timedelta(0))
    """Time from the start of the run, by workflow time."""


class RunRequest(Sent):
    """The one argument of a start: `{"agent": "support", "prompt": "…"}` is enough."""

    agent: str
    prompt: str | list[Any]
    """Text, or a list of text and Pydantic AI's content parts as JSON (`{"kind": "image-url", "url": "…"}`)."""
    params: Any = None
    """What the agent's `deps` factory gets, checked against its `params_type`. In history: no secrets."""
    model: str | None = None
    """A key of the agent's `models`; absent = the agent's own model."""
    limits: Limits | None = None
    """Only fields that are set count, and they may only lower the agent's."""
    metadata: dict[str, Any] = {}
    """Free JSON, given to tools as `current_call().metadata`."""


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
        return {name: value for name, value in handler(self).items() if not _is_empty(value) and value not in (0, 0.0)}


class Output(Recorded):
    """A run's output, as JSON, with the name of its type where the agent has several."""

    value: Any = None
    type: str | None = None


class RunResult(Recorded):
    """What the workflow returns."""

    output: Any = None
    output_type: str | None = None
    usage: Usage = Usage()
    turns: int = 1
    steps: int = 0
    audit: list[Json] = []


class Fault(Compact):
    """Why a run ends, as data: what is raised loses its details at the activity boundary."""

    type: str
    message: str = ""
    details: list[Any] = []


class RetryState(Compact):
    """How often the model was asked to mend something. These counts are the workflow's, not the activity attempts."""

    tools: dict[str, int] = {}
    """By tool name: steps in a row in which a call of it failed."""
    output: int = 0
    """Output retries used."""
    refused: list[str] = []
    """Tools that have spent the one free refusal of a call made before they were loaded."""


class StepRetries(Compact):
    """What a step's answer adds to `RetryState`."""

    failed: list[str] = []
    output: int = 0
    refused: list[str] = []


Effect = Literal["unsafe", "idempotent", "safe"]
"""What it means to run a tool again. `unsafe`: never; `idempotent`: with the same key; `safe`: freely."""
OnTimeout = Literal["report", "retry", "fail"]
Action = Literal["run", "approve", "external", "question", "unknown"]
OutcomeKind = Literal[
    "returned", "retried", "failed", "denied", "expired", "cancelled", "unknown", "needs_approval", "deferred"
]


class CallOptions(Compact):
    """How Temporal runs a tool call, resolved from its `ToolPolicy` when it was planned. Seconds throughout."""

    effect: Effect = "unsafe"
    timeout: float | None = None
    """The tool's own time, kept in the activity; `None` = none."""
    start_to_close: float = 3605.0
    """Temporal's time for one attempt, a few seconds more than `timeout`."""
    heartbeat: float = 30.0
    schedule_to_start: float | None = None
    attempts: int = 1
    backoff: float = 1.0
    """First interval between attempts; doubles, at most 60."""
    on_timeout: OnTimeout = "report"
    sequential: bool = False
    task_queue: str | None = None
    grace: float = 3.0
    """Time a cancelled tool has before it is given up."""


class ApprovalTerms(Compact):
    """Who may let a call run, and until when, as it was planned. Seconds throughout."""

    rule: str = ""
    """Where the gate comes from: the policy's pattern, `requires_approval`, or that the tool asked."""
    approvers: list[str] = []
    """Names, or `group:<name>`; empty = anyone."""
    quorum: int = 1
    expires_after: float | None = None
    on_expiry: Literal["deny", "fail", "escalate"] = "deny"
    escalate_to: ApprovalTerms | None = None
    reminders: list[float] = []
    allow_edit: bool = False
    forbid_self: bool = False


class PlannedCall(Compact):
    """One tool call, as `model_request` planned it."""

    key: str
    """`step.call-digest`: unique in the run, and bound to the tool and arguments that were seen."""
    tool_call_id: str
    tool: str
    args: Any = {}
    """The canonical JSON of the validated arguments: what was seen is what runs."""
    action: Action = "run"
    options: CallOptions = CallOptions()
    approval: ApprovalTerms | None = None
    """For the action `approve`."""
    wait: float | None = None
    """For the action `external` and `question`: seconds until the call is given up; absent = never."""
    metadata: Json = {}

    @field_validator("action", mode="before")
    @classmethod
    def _known_action(cls, value: Any) -> Any:
        return value if value in ("run", "approve", "external", "question") else "unknown"


class CallOutcome(Compact):
    """What became of one call. Every planned call gets exactly one."""

    key: str
    tool_call_id: str
    tool: str
    kind: OutcomeKind
    parts: list[Json] = []
    """Pydantic AI's message parts, verbatim; empty where the workflow wrote the outcome, then `text` is told."""
    text: str = ""
    charged: bool = False
    """A `retried` that uses one of the tool's retries."""
    usage: Usage = Usage()
    error: Fault | None = None
    """Ends the run after the sibling calls have ended."""
    metadata: Json = {}

    @field_validator("kind", mode="before")
    @classmethod
    def _known_kind(cls, value: Any) -> Any:
        known = ("returned", "retried", "denied", "expired", "cancelled", "unknown", "needs_approval", "deferred")
        return value if value in known else "failed"


class Step(Compact):
    """The answer of `model_request`: one model response and the plan for it."""

    entry: Json | None = None
    """The transcript's entry: `{"kind": "response", "response": …}` with the model's response verbatim, and
    `request_parts` where the request's parts as sent aren't what the transcript gives. Absent where a hook refused to
    ask the model."""
    calls: list[PlannedCall] = []
    parts: list[Json] = []
    """Answers that need no call: bad arguments, unknown tools, output tools, feedback."""
    settle: Literal["now", "after_calls"] = "now"
    """`after_calls`: there are output calls beside others; `settle` decides on them when the others have ended."""
    outputs: list[Json] = []
    """With `after_calls`: `tool_call_id` and `tool` of each output call, which need an answer whatever happens."""
    retried: bool = False
    """A call of the step has bad arguments, so that the model has to mend it before an output counts."""
    output: Output | None = None
    error: Fault | None = None
    retries: StepRetries = StepRetries()
    usage: Usage = Usage()
    model: str | None = None
    finish_reason: str | None = None


class Settlement(Compact):
    """The answer of `settle`: what the output calls of a step came to, after its other calls."""

    parts: list[Json] = []
    output: Output | None = None
    error: Fault | None = None
    retries: StepRetries = StepRetries()
    usage: Usage = Usage()


class RunPlan(Compact):
    """The answer of `prepare_run`: what the worker knows of the agent."""

    agent: str
    version: str = ""
    model: str = ""
    limits: Limits = Limits()
    max_parallel_calls: int = 16
    search_attributes: list[str] = []
    """The names that may be upserted: registered, and with the right type."""
    model_timeout: float = 600.0
    """Seconds for one model request (start to close)."""
    model_attempts: int = 5
    warnings: list[str] = []


class Mark(Compact):
    """A place in the transcript: how many entries come before it and their digest."""

    length: int = 0
    digest: str = ""


class Seen(Compact):
    """What an activity needs to have the transcript: a place that a worker may hold, and what came since.

    `tail` is absent where it would be too large; the activity then asks the workflow by query.
    """

    base: Mark
    tail: list[Json] | None = None
    until: Mark
    """The place after `tail`."""


class StepInput(Compact):
    """The argument of `model_request`."""

    agent: str
    seen: Seen
    step: int
    model: str | None = None
    retries: RetryState = RetryState()
    usage: Usage = Usage()
    request_input_tokens: int | None = None
    run_id: str = ""
    """The first run id of the chain."""


class SettleInput(StepInput):
    """The argument of `settle`."""

    retried: bool = False
    """A call of the step has to be mended by the model, so its output isn't used."""


class ToolInput(Compact):
    """The argument of `tool:<name>`."""

    agent: str
    seen: Seen
    step: int
    call: PlannedCall
    model: str | None = None
    retries: RetryState = RetryState()
    usage: Usage = Usage()
    run_id: str = ""
    idempotency_key: str = ""
    approved: bool = False
    """A decision to run this call is recorded. Without it the activity refuses a gated call."""


class EditInput(StepInput):
    """The argument of `check_edit`."""

    call: PlannedCall
    args: dict[str, Any]


class EditCheck(Compact):
    """The answer of `check_edit`: the call with its new arguments, or why they are refused."""

    call: PlannedCall | None = None
    problem: str = ""


class Decide(Sent):
    """The argument of `approve` and `deny`."""

    call: str
    """The whole key, as `pending` shows it."""
    by: str = ""
    """Who decides: a claim, and marked so."""
    reason: str = ""
    args: dict[str, Any] | None = None
    """`approve` only: other arguments than those that were asked for, where the policy allows it."""


class Complete(Sent):
    """The argument of `complete`: the result of a call that is made outside."""

    call: str
    result: Any = None
    error: str | None = None
    by: str = ""


class Decided(Recorded):
    """The answer of an update that decided something."""

    call: str
    outcome: Literal["approved", "denied", "completed", "voted"]
    needed: int = 0
    """Votes that are still needed."""


class StatusView(Recorded):
    """The answer of the query `status`."""

    state: Literal["running", "waiting", "idle", "closing", "done"]
    agent: str
    version: str
    model: str
    turn: int
    step: int
    usage: Usage
    open_calls: list[Json] = []
    pending: list[Json] = []
    queue: int = 0
    rejected: list[Json] = []
    rejected_count: int = 0


class TranscriptQuery(Sent):
    """The argument of the query `transcript`; may be absent."""

    start: int = Field(default=0, ge=0)
    max_bytes: int = Field(default=1_500_000, ge=1, le=1_800_000)


class TranscriptPage(Recorded):
    """The answer of the query `transcript`: entries from `start` on, at least one where there is one."""

    start: int = 0
    entries: list[Json] = []
    total: int = 0
    digest: str = ""
    """Digest of the whole transcript."""
