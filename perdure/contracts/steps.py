"""The arguments and answers of the activities."""

from __future__ import annotations

from typing import Any, Literal

from perdure.contracts.answered import Fault, Mark, Output, Usage
from perdure.contracts.base import Compact, Json
from perdure.contracts.calls import ApprovalTerms, PlannedCall
from perdure.contracts.sent import Limits


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
    interrupted: bool = False
    """The request was cancelled while the model answered: the entry holds the text it had got to."""
    warnings: list[str] = []
    """What whoever looks at the run should know: an approval that gates nothing."""
    counted_input: int | None = None
    """Input tokens of a request that was counted and not sent, since they are more than `request_input_tokens`."""
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
    models: dict[str, str] = {}
    """The agent's models, by key, with their ids as far as they are known; its own under the empty key."""
    limits: Limits = Limits()
    on_limit: Literal["fail", "ask"] = "fail"
    limit_terms: ApprovalTerms | None = None
    """Who may raise limits over the agent's, and until when they are asked; absent = nobody may. It always has a rule,
    so that terms which are all default are written."""
    deadline_pauses: bool = False
    """Time in which the run waits for people doesn't count for the deadlines."""
    max_parallel_calls: int = 16
    search_attributes: list[str] = []
    """The names that may be upserted: registered, and with the right type."""
    model_timeout: float = 600.0
    """Seconds for one model request (start to close)."""
    model_attempts: int = 5
    compact_above: int | None = None
    """Tokens of the model's context from which on the conversation is compacted; absent = never."""
    compact_keep: int = 0
    """Bytes of the latest messages that a compaction leaves as they are."""
    compact_with: str | None = None
    """The key of the model that summarises; absent = the run's own."""
    verifies: bool = False
    """The app has a verifier: only verified people decide."""
    encrypts: bool = False
    """The worker's data converter has a codec, so that a token isn't written to history in clear."""
    notifies: bool = False
    """The app has a notifier."""
    stores: bool = False
    """The worker's data converter has a payload store, which carries what Temporal can't."""
    warnings: list[str] = []


class Handoff(Compact):
    """That the conversation goes on with another agent, once the calls of the step have ended."""

    plan: RunPlan
    params: Json = {}
    model: str | None = None


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


class CompactInput(StepInput):
    """The argument of `compact`."""

    keep_bytes: int
    """Bytes of JSON of the latest messages that stay as they are; from the last response on they stay in any case."""
    model_key: str | None = None
    """The key of the model that summarises; absent = the agent's own model."""
    requests_left: int | None = None
    """Model requests that the summary may take; absent = as many as it needs."""


class Compaction(Compact):
    """The answer of `compact`."""

    entry: Json | None = None
    """The note for the transcript, but for its time; absent where there is nothing that it could stand for."""
    upto: int = 0
    """How many entries the note stands for."""
    usage: Usage = Usage()


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
    approved_by: list[str] = []
    """Who approved it."""
    bound: bool = False
    """The run had a session with the server that the call is bound to."""


class EditInput(StepInput):
    """The argument of `check_edit`."""

    call: PlannedCall
    args: dict[str, Any] = {}


class EditCheck(Compact):
    """The answer of `check_edit`: the call with its new arguments, or why they are refused."""

    call: PlannedCall | None = None
    problem: str = ""
