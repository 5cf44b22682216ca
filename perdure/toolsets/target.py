"""How the definition of a tool says that something else than a worker of the agent runs its calls."""

from __future__ import annotations

from typing import Any

from pydantic_ai.tools import ToolDefinition

from perdure.contracts import Target

TARGET = "perdure_target"
"""The key in a tool's metadata. The model never sees metadata; wrappers (prefixes, filters) keep it."""


RESULT = "perdure_result"
"""The key of the type or JSON Schema that its results are checked by. It stays in the worker."""


def metadata_of(target: Target, result: Any = None) -> dict[str, Any]:
    """The metadata of a tool whose calls go to `target`, and whose results are of the type `result`."""
    return {TARGET: target.model_dump(mode="json")} | ({} if result is None else {RESULT: result})


def target_of(tool: ToolDefinition) -> Target | None:
    """What runs the calls of a tool; `None` = a worker of the agent, as any function."""
    raw = (tool.metadata or {}).get(TARGET)
    return None if raw is None else Target.model_validate(raw)


def result_of(tool: ToolDefinition) -> Any:
    """The type or JSON Schema of a tool's results; `None` = anything."""
    return (tool.metadata or {}).get(RESULT)
