"""The arguments and answers of the activities around decisions: who decides, what is told, what is handed over."""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import Field, field_validator

from perdure.contracts.base import Compact, Json, Recorded

VerbName = Literal["approve", "deny", "complete"]
MAX_TOKEN_LIFE = 300
"""Seconds that a token in clear may be valid."""
TOKEN_LEEWAY = 30
"""Seconds by which the clocks of those who make tokens and of the workflow may differ."""
Decision = Literal["approve", "deny", "complete", "set_limits"]
"""What a token may be made for."""
LIMITS = "limits"
"""What a token for `set_limits` names in place of a call."""
Kind = Literal["approval", "external", "question", "limit"]
"""What a call waits for. `limit`: not a call, but the run itself waits until a limit is raised."""


def is_time(value: Any) -> bool:
    """Whether a claim of a token is a time, as RFC 7519 has it."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


class Principal(Recorded):
    """Somebody who was verified. What an app's verifier returns."""

    name: str = Field(min_length=1)
    groups: list[str] = []
    """Without the prefix `group:` that approvers are written with."""

    @field_validator("name")
    @classmethod
    def _is_a_person(cls, value: str) -> str:
        if value.startswith("group:"):
            raise ValueError("a person's name can't begin with 'group:'")
        return value


class TokenUse(Recorded):
    """What a token is used for: the second argument of an app's verifier."""

    workflow_id: str
    call: str
    """The key of the call; of `set_limits`: `limits`."""
    decision: Decision
    digest: str
    """`args_digest` of the arguments that are decided on: those that were shown, or the edited ones of an `approve`; of
    `complete`, of the object with its `result` or `error`; of `set_limits`, of the limits that are set."""
    at: str
    """Workflow time of the arrival, ISO 8601: what expiry is checked against."""


class VerifyInput(Compact):
    """The argument of `verify`."""

    token: str
    use: TokenUse


class Verified(Compact):
    """The answer of `verify`: who decides, or why that isn't known."""

    principal: Principal | None = None
    problem: str = ""


class ResultInput(Compact):
    """The argument of `check_result`. `result` has one item, so that an empty one is written."""

    agent: str
    tool: str
    result_schema: Json = {}
    """What the call came with; the policy's own type or schema wins."""
    result: list[Any]


class EndpointInput(Compact):
    """The argument of `check_endpoint`."""

    endpoint: str


class ContentInput(Compact):
    """The argument of `check_content`. Only lists are asked about: text is always fine."""

    content: list[Any] = []


class ResultCheck(Compact):
    """The answer of `check_result`, `check_content` and `check_endpoint`."""

    problem: str = ""


class ExternalCall(Recorded):
    """A call that is made outside: the argument of `dispatch`, and of a `ToolPolicy(dispatch=…)` function."""

    workflow_id: str
    run_id: str
    """The first run id of the workflow's chain."""
    agent: str
    call: str
    """The key, which `complete` is sent with."""
    kind: Kind
    tool: str
    tool_call_id: str
    args: Any = {}
    metadata: Json = {}
    """Of the call, as its tool gave it."""
    run_metadata: Json = {}
    """`RunRequest.metadata`, or a note of its size where it is large."""
    idempotency_key: str
    """The same for every attempt to hand this call over."""
    expires_at: str | None = None
    """When the result is no longer waited for, ISO 8601."""


class Notification(Recorded):
    """Something people should know: the argument of `notify`, and of an app's notifier."""

    id: str
    """The same for every attempt, unique to what happened: drop what you have seen."""
    event: Literal["asked", "reminded", "escalated", "decided"]
    at: str
    """Workflow time, ISO 8601."""
    workflow_id: str
    run_id: str
    agent: str
    started_by: str = ""
    run_metadata: Json = {}
    call: str
    kind: Kind
    tool: str
    tool_call_id: str
    args: Any = {}
    """Cut to a note of their size where they are large: the query `pending` has them whole."""
    metadata: Json = {}
    asked_at: str
    expires_at: str | None = None
    approvers: list[str] = []
    needed: int = 0
    votes: list[str] = []
    outcome: str = ""
    """Of `decided`: `approved`, `denied`, `expired`, `completed`, `failed`, `cancelled`; of a limit, `raised`."""
    by: str = ""
    verified: bool = False
    reason: str = ""
