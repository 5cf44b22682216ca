"""A tool call on the wire: how it was planned, and what became of it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import field_validator

from perdure.contracts.answered import Fault, Usage
from perdure.contracts.base import Compact, Json, cut
from perdure.contracts.declared import Declared
from perdure.errors import DeclarationError

Effect = Literal["unsafe", "idempotent", "safe"]
"""What it means to run a tool again. `unsafe`: never; `idempotent`: with the same key; `safe`: freely."""
OnTimeout = Literal["report", "retry", "fail"]
LargeResult = Literal["", "truncate", "store"]
"""What becomes of a result that is too large. Empty: the call fails, in words."""
Action = Literal["run", "approve", "external", "question", "unknown"]
OutcomeKind = Literal[
    "returned", "retried", "failed", "denied", "expired", "cancelled", "unknown", "needs_approval", "deferred"
]

KINDS = ("activity", "workflow", "nexus", "agent", "handoff")
"""Of targets."""


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
    max_result_bytes: int | None = None
    """Bytes of a result, as the model reads it; absent = as much as perdure carries."""
    large_result: LargeResult = ""


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


class AgentTerms(Compact):
    """What a call of another agent asks for, beside its arguments, and what is made of those."""

    prompt: str = ""
    """The name of the argument that is the prompt; every other argument is a param. Empty: of a handoff, none is."""
    params: Json = {}
    """Params that are always the same."""
    inherit: list[str] = []
    """Names of params that are the calling run's own."""
    model: str | None = None
    limits: Json = {}
    """The fields that are set."""
    max_depth: int = 3
    """How deep runs may start each other."""


class Target(Declared, Compact):
    """What runs a call in place of the activity `tool:<name>`: the workflow schedules it under its own type."""

    kind: Literal["activity", "workflow", "nexus", "agent", "handoff", "unknown"] = "unknown"
    name: str = ""
    """The type of the activity or workflow, or the name of the operation or agent."""
    task_queue: str | None = None
    """Absent = the run's; the policy's wins. A Nexus endpoint has its own."""
    endpoint: str = ""
    service: str = ""
    """Of a Nexus operation."""
    positional: list[str] = []
    """The names of the arguments in their order; absent = one argument, the object with all of them."""
    no_arguments: bool = False
    """It takes none at all."""
    heartbeats: bool = False
    """An activity sends heartbeats, so that silence means that it was lost."""
    tells_errors: bool = False
    """The messages of its errors are for the model."""
    agent: AgentTerms | None = None

    @field_validator("kind", mode="before")
    @classmethod
    def _known_kind(cls, value: Any) -> Any:
        return value if value in KINDS else "unknown"

    @classmethod
    def check_given(cls, given: Json) -> None:
        """A kind that isn't known is one of a later version where it is read, and a slip where it is declared."""
        if given.get("kind") not in KINDS:
            said = f"kind={given['kind']!r} is none of" if "kind" in given else "needs kind=…, one of"
            raise DeclarationError(f"Target(…): {said} {KINDS}")


class PlannedCall(Compact):
    """One tool call, as `model_request` planned it."""

    key: str
    """`step.call-digest`: unique in the run, and bound to the tool and arguments that were seen."""
    tool_call_id: str = ""
    tool: str = ""
    """Both are empty where it isn't a call that waits, but the run itself, for a limit."""
    args: Any = {}
    """The canonical JSON of the validated arguments: what was seen is what runs."""
    action: Action = "run"
    options: CallOptions = CallOptions()
    target: Target | None = None
    """Absent = the activity `tool:<name>` of a worker of the agent."""
    bound_to: str = ""
    """The server that holds a session for the run: the call goes to the worker that has it. Empty = to any."""
    approval: ApprovalTerms | None = None
    """The terms of its policy, or of what gates it. They apply when the call is gated, now or by its tool."""
    wait: float | None = None
    """Seconds that a result from outside is waited for; absent = for ever."""
    after: Literal["run", "external", "question"] = "run"
    """For the action `approve`: what an approved call does. Others than `run` then wait for a result from outside."""
    dispatch: bool = False
    """Where it waits for a result from outside, the activity `dispatch` hands it over."""
    checked: bool = False
    """A result from outside has a type or schema: the activity `check_result` compares."""
    result_schema: Json = {}
    """The schema, where it isn't the policy's."""
    metadata: Json = {}

    @field_validator("action", mode="before")
    @classmethod
    def _known_action(cls, value: Any) -> Any:
        return value if value in ("run", "approve", "external", "question") else "unknown"


class Moved(Compact):
    """How a call is made whose tool is served otherwise since it was planned."""

    target: Target | None = None
    """Absent: somebody outside, whose result is waited for."""
    options: CallOptions = CallOptions()
    wait: float | None = None
    dispatch: bool = False
    checked: bool = False
    """These three as in a `PlannedCall`."""


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
    action: Literal["external", "question"] | None = None
    """Of a `deferred` call: what it waits for."""
    result: list[Any] = []
    """One item, where the result came from outside: the result."""
    moved: Moved | None = None
    """It was not run: it is to be made so. `kind` is for a workflow that doesn't know this."""
    bound_queue: str = ""
    """The queue of the worker that holds the session now, of a call that needs one."""
    usage: Usage = Usage()
    error: Fault | None = None
    """Ends the run after the sibling calls have ended."""
    metadata: Json = {}

    @field_validator("kind", mode="before")
    @classmethod
    def _known_kind(cls, value: Any) -> Any:
        known = ("returned", "retried", "denied", "expired", "cancelled", "unknown", "needs_approval", "deferred")
        return value if value in known else "failed"


def told(call: PlannedCall, kind: OutcomeKind, text: str, error: Fault | None = None) -> CallOutcome:
    """An outcome in our own words: `text` is what the model is told. Runs anywhere."""
    return CallOutcome(
        key=call.key, tool_call_id=call.tool_call_id, tool=call.tool, kind=kind, text=cut(text), error=error
    )
