"""How a tool says that its calls need the worker that holds a session for the run."""

from __future__ import annotations

from typing import Any

from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset

BOUND = "perdure_bound"
"""The key in a tool's metadata: the name of the server that holds a session."""


def bound_to(tool: ToolDefinition) -> str:
    """The server that holds a session for each run; empty where any worker can make the call."""
    return (tool.metadata or {}).get(BOUND, "")


def any_bound(toolset: AbstractToolset[Any]) -> bool:
    """Whether a toolset, or one that it wraps, holds sessions, so that its worker needs a queue of its own."""
    found: list[bool] = []
    toolset.apply(lambda leaf: found.append(getattr(leaf, "per_run", False) is True))
    return any(found)
