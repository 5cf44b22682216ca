"""What is durable about an agent: its policies, limits, models and dependencies.

`DurableAgent` adds to an ordinary Pydantic AI agent what Temporal needs to know. Nothing here runs a workflow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.models import Model

from perdure.contracts import ApprovalTerms, Limits
from perdure.errors import DeclarationError
from perdure.numbers import positive, whole
from perdure.policy import DEFAULT_POLICY, Approval, ToolPolicy, seconds
from perdure.typed import check_fields

OWN = ("model_timeout", "model_attempts", "max_parallel_calls", "compact_above", "compact_keep", "deps")
"""Fields that are looked at by checks of their own; `deps` by that of the `App`, which knows the agent's name."""


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
    """What a run may use. A start may only lower it."""
    on_limit: Literal["fail", "ask"] = "fail"
    """What becomes of a turn that reaches a limit. `fail`: it fails with `LimitExceeded`; `ask`: the run waits until a
    limit is raised with `set_limits`, or somebody denies that. See `docs/budgets.md`."""
    limit_approval: Approval | None = None
    """Who may raise limits over `limits` in an open run, and until when they are asked. `None`: with `ask` anyone, for
    ever; with `fail` nobody."""
    deadline_counts_waiting: bool = True
    """Whether time in which a run waits for people, or a session for a message, counts for the deadlines."""
    model_timeout: float | timedelta = 600.0
    """Time for one attempt of a model request."""
    model_attempts: int = 5
    """Attempts of a model request by Temporal; the provider client's own retries are switched off."""
    max_parallel_calls: int = 16
    """Tool calls of a run that are open at once."""
    require_descriptions: bool = False
    """Whether a tool, or an argument of one, without a description is refused, where tools are known without a run."""
    compact_above: int | None = None
    """Tokens of the context (input and output of the last model request) above which older messages are summarised.
    `None`: four fifths of the model's window, where Pydantic AI knows it, which is also the most; 0: never."""
    compact_keep: int | None = None
    """Bytes of JSON of the latest messages that stay as they are. `None`: one for each token of `compact_above`, which
    is about a quarter of the context."""
    compact_with: str | None = None
    """The key in `models` of the model that summarises; `None` = the run's own."""

    def __post_init__(self) -> None:
        check_fields(self, own=OWN)
        self._check_compaction()
        timeout = seconds(self.model_timeout)
        if not positive(timeout):
            raise DeclarationError(f"model_timeout={self.model_timeout!r} must be a finite time, more than 0 seconds")
        for name in ("model_attempts", "max_parallel_calls"):
            if not whole(value := getattr(self, name)):
                raise DeclarationError(f"{name}={value!r} must be at least 1, a whole number")
        if self.limit_approval is not None:
            _check_limit_approval(self.limit_approval, self.on_limit)

    @property
    def limit_terms(self) -> ApprovalTerms | None:
        """Who may raise limits, as it goes into history."""
        approval = self.limit_approval or (Approval() if self.on_limit == "ask" else None)
        return approval.terms("limit_approval") if approval is not None else None

    def _check_compaction(self) -> None:
        for name in ("compact_above", "compact_keep"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 0):
                raise DeclarationError(f"{name}={value!r} must be a whole number, at least 0")
        if self.compact_with is not None and self.compact_with not in self.models:
            raise DeclarationError(
                f"compact_with={self.compact_with!r} is none of the agent's models. Known models: {sorted(self.models)}"
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


def _check_limit_approval(approval: Approval, on_limit: str) -> None:
    """Raise `DeclarationError` for terms that mean something only for a call."""
    if approval.quorum > 1 or approval.when is not None or approval.allow_edit:
        raise DeclarationError(
            "limit_approval=Approval(…) takes no quorum, when or allow_edit: one person sets limits, and all are asked"
        )
    if on_limit == "fail" and (approval.expires_after is not None or approval.reminders):
        raise DeclarationError("limit_approval=Approval(expires_after=…, reminders=…) needs on_limit='ask'")
    if approval.escalate_to is not None:
        _check_limit_approval(approval.escalate_to, on_limit)
