"""What is durable about an agent: its policies, limits, models and dependencies.

`DurableAgent` adds to an ordinary Pydantic AI agent what Temporal needs to know. Nothing here runs a workflow.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.models import Model

from perdure.contracts import ApprovalTerms, CallOptions, Effect, Limits, OnTimeout
from perdure.errors import DeclarationError

OUTER_MARGIN = 30.0
"""Seconds by which Temporal's clock is longer than the tool's own and its grace, so that the tool's own answer wins. In
them the worker also finds the transcript and builds the deps."""
EFFECTS: tuple[str, ...] = get_args(Effect)
ON_TIMEOUTS: tuple[str, ...] = get_args(OnTimeout)
UNTIMED_START_TO_CLOSE = 3600.0
"""Seconds an attempt of a tool without a timeout may take."""


@dataclass(frozen=True, kw_only=True)
class Approval:
    """Who may let a call run, and until when. Times by workflow time."""

    approvers: Sequence[str] = ()
    """Names; empty = anyone. Without a verifier a name is a claim, and the audit says so."""
    quorum: int = 1
    """How many different people have to approve. One denial is enough to deny."""
    expires_after: timedelta | None = None
    """`None` = waits for ever, with no timer and no open activity."""
    on_expiry: Literal["deny", "fail", "escalate"] = "deny"
    """`deny`: the model is told that nobody answered; `fail`: the run ends with `ApprovalExpired`; `escalate`: the next
    approvers are asked, votes begin anew."""
    escalate_to: Approval | None = None
    when: Callable[[Any, dict[str, Any]], bool | Awaitable[bool]] | None = None
    """Called with the run context and the validated arguments in `model_request`; `None` = always. A predicate that
    raises gates the call."""
    allow_edit: bool = False
    """Whether an approver may change the arguments. They are validated before they are accepted."""
    forbid_self: bool = False
    """Whoever edited the arguments may not approve them as well."""

    def __post_init__(self) -> None:
        if self.quorum < 1:
            raise DeclarationError(f"quorum={self.quorum!r} must be at least 1")
        if self.approvers and self.quorum > len(set(self.approvers)):
            raise DeclarationError(f"quorum={self.quorum!r} is more than the approvers: {list(self.approvers)}")
        if groups := [name for name in self.approvers if name.startswith("group:")]:
            raise DeclarationError(
                f"approvers={groups!r}: nobody can show to be in a group without a verifier, which isn't built yet; "
                "name the people"
            )
        if self.on_expiry == "escalate" and self.escalate_to is None:
            raise DeclarationError("on_expiry='escalate' needs escalate_to=Approval(…)")
        if self.on_expiry != "deny" and self.expires_after is None:
            raise DeclarationError(f"on_expiry={self.on_expiry!r} needs expires_after=…")

    def terms(self, rule: str) -> ApprovalTerms:
        """The terms as they go into history."""
        return ApprovalTerms(
            rule=rule,
            approvers=list(self.approvers),
            quorum=self.quorum,
            expires_after=seconds(self.expires_after),
            on_expiry=self.on_expiry,
            escalate_to=self.escalate_to.terms(rule) if self.escalate_to else None,
            allow_edit=self.allow_edit,
            forbid_self=self.forbid_self,
        )


@dataclass(frozen=True, kw_only=True)
class ToolPolicy:
    """How Temporal runs a tool. Times are seconds or `timedelta`.

    A policy belongs to the name the model sees, or to a pattern of `fnmatch` (`"crm_*"`); an exact name wins, then the
    first pattern that matches.
    """

    effect: Effect = "unsafe"
    """`unsafe`: runs once, and a lost attempt is reported to the model as "may or may not have run". `idempotent`:
    retried by Temporal with the same `current_call().idempotency_key`. `safe`: retried freely."""
    timeout: float | timedelta | None = None
    """The tool's own time in one attempt; `None`: as long as Temporal's clock allows, an hour."""
    on_timeout: OnTimeout | None = None
    """`report` (default of `unsafe`): outcome `unknown`, as a thread may still be running; `retry` (default of the
    others; refused for `unsafe`); `fail`: the run ends with `ToolTimeout`."""
    attempts: int | None = None
    """Attempts by Temporal, the first included. Default: 1 for `unsafe`, else 5."""
    backoff: float | timedelta = 1.0
    """The interval before the second attempt; doubles, at most 60 s."""
    heartbeat: float | timedelta = 30.0
    """After this much silence of the worker the attempt is lost. Shorter makes a server restart lose attempts."""
    schedule_to_start: float | timedelta | None = None
    """Time to find a worker; `None` = waits. Set it where a queue of its own may have no worker."""
    cancel_grace: float | timedelta = 3.0
    """Time a cancelled tool has to end before it is given up."""
    task_queue: str | None = None
    """A queue of its own, served by a worker with the same `App`; `None` = the run's."""
    approval: Approval | None = None
    """Gates the tool: no call of it runs without a recorded decision."""
    wait: float | timedelta | None = None
    """How long a result from outside is waited for; `None` = for ever."""

    def __post_init__(self) -> None:
        if self.effect not in EFFECTS:
            raise DeclarationError(f"effect={self.effect!r} is none of {EFFECTS}")
        if self.on_timeout not in (None, *ON_TIMEOUTS):
            raise DeclarationError(f"on_timeout={self.on_timeout!r} is none of {ON_TIMEOUTS}")
        if self.effect == "unsafe" and (self.attempts or 1) > 1:
            raise DeclarationError(
                f"attempts={self.attempts!r} needs effect='idempotent' or 'safe': an unsafe tool never runs twice"
            )
        if self.effect == "unsafe" and self.on_timeout == "retry":
            raise DeclarationError("on_timeout='retry' needs effect='idempotent' or 'safe'")
        if self.attempts is not None and self.attempts < 1:
            raise DeclarationError(f"attempts={self.attempts!r} must be at least 1")
        for name in ("timeout", "heartbeat", "schedule_to_start", "backoff", "cancel_grace"):
            value = seconds(getattr(self, name))
            if value is not None and not 0 < value < math.inf:
                raise DeclarationError(f"{name}={value!r} must be a finite number of seconds, more than 0")

    def options(self, *, tool_timeout: float | None = None, sequential: bool = False) -> CallOptions:
        """The policy resolved for one call, as it goes into history.

        `tool_timeout` is Pydantic AI's own timeout of the tool, which answers the model with a retry.
        """
        timeout = seconds(self.timeout)
        inner = max((value for value in (timeout, tool_timeout) if value is not None), default=UNTIMED_START_TO_CLOSE)
        default_on_timeout: OnTimeout = "report" if self.effect == "unsafe" else "retry"
        return CallOptions(
            effect=self.effect,
            timeout=timeout,
            start_to_close=inner + (seconds(self.cancel_grace) or 0.0) + OUTER_MARGIN,
            heartbeat=seconds(self.heartbeat) or 30.0,
            schedule_to_start=seconds(self.schedule_to_start),
            attempts=self.attempts or (1 if self.effect == "unsafe" else 5),
            backoff=seconds(self.backoff) or 1.0,
            on_timeout=self.on_timeout or default_on_timeout,
            sequential=sequential,
            task_queue=self.task_queue,
            grace=seconds(self.cancel_grace) or 3.0,
        )


def seconds(value: float | timedelta | None) -> float | None:
    """`value` in seconds."""
    return value.total_seconds() if isinstance(value, timedelta) else value


@dataclass(frozen=True, kw_only=True)
class DurableAgent:
    """An ordinary Pydantic AI agent with what makes it durable. Every field but the agent has a default."""

    agent: AbstractAgent[Any, Any] = field(kw_only=False)
    version: str = ""
    """Free text, kept in history and shown in the Web UI."""
    models: Mapping[str, Model | str] = field(default_factory=lambda: {})
    """Further models by key; a run chooses one with `RunRequest.model`."""
    params_type: Any = None
    """What `RunRequest.params` must be; checked before the run begins."""
    deps: Callable[..., Any] | None = None
    """`deps(params, resources)`, sync or async, called on the worker for every model request and tool call. Its result
    is never written to history, and nothing is closed after it: what has to be closed belongs into the `App`'s
    `resources`. `None`: the params themselves are the deps."""
    policies: Mapping[str, ToolPolicy] = field(default_factory=lambda: {})
    limits: Limits = field(default_factory=Limits)
    model_timeout: float | timedelta = 600.0
    """Time for one attempt of a model request."""
    model_attempts: int = 5
    """Attempts of a model request by Temporal; the provider client's own retries are switched off."""
    max_parallel_calls: int = 16
    """Tool calls of a run that are open at once."""

    def __post_init__(self) -> None:
        timeout = seconds(self.model_timeout)
        if timeout is None or not 0 < timeout < math.inf:
            raise DeclarationError(f"model_timeout={self.model_timeout!r} must be a finite time, more than 0 seconds")
        if self.model_attempts < 1 or self.max_parallel_calls < 1:
            raise DeclarationError(
                f"model_attempts={self.model_attempts!r} and max_parallel_calls={self.max_parallel_calls!r} "
                "must be at least 1"
            )

    @property
    def name(self) -> str:
        """The agent's name, which a start asks for."""
        return self.agent.name or ""

    def rule(self, tool: str) -> str:
        """The name or pattern of the policy that applies to a tool."""
        if tool in self.policies:
            return tool
        return next((name for name in self.policies if fnmatchcase(tool, name)), "")

    def policy(self, tool: str) -> ToolPolicy:
        """The policy of a tool by the name the model sees."""
        return self.policies.get(self.rule(tool), DEFAULT_POLICY)


DEFAULT_POLICY = ToolPolicy()
