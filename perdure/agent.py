"""What is durable about an agent: its policies, limits, models and dependencies.

`DurableAgent` adds to an ordinary Pydantic AI agent what Temporal needs to know. Nothing here runs a workflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.models import Model

from perdure.contracts import Limits
from perdure.errors import DeclarationError
from perdure.policy import DEFAULT_POLICY, ToolPolicy, seconds


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
    compact_above: int | None = None
    """Tokens of the context (input and output of the last model request) above which older messages are summarised.
    `None`: four fifths of the model's window, where Pydantic AI knows it, which is also the most; 0: never."""
    compact_keep: int | None = None
    """Bytes of JSON of the latest messages that stay as they are. `None`: one for each token of `compact_above`, which
    is about a quarter of the context."""
    compact_with: str | None = None
    """The key in `models` of the model that summarises; `None` = the run's own."""

    def __post_init__(self) -> None:
        self._check_compaction()
        timeout = seconds(self.model_timeout)
        if timeout is None or not 0 < timeout < math.inf:
            raise DeclarationError(f"model_timeout={self.model_timeout!r} must be a finite time, more than 0 seconds")
        if self.model_attempts < 1 or self.max_parallel_calls < 1:
            raise DeclarationError(
                f"model_attempts={self.model_attempts!r} and max_parallel_calls={self.max_parallel_calls!r} "
                "must be at least 1"
            )

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
