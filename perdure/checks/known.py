"""The tools of an agent that can be known without a run, by the names the model sees."""

from __future__ import annotations

from typing import Any

from pydantic_ai.tools import ToolDefinition

from perdure.agent import DurableAgent
from perdure.listing import joined, shown
from perdure.toolsets.target import result_of


def static_tools(durable: DurableAgent) -> tuple[dict[str, ToolDefinition], bool]:
    """The agent's tools that can be known without a run, by name, sorted; and whether those are all of them."""
    found = joined(map(shown, durable.agent.toolsets))
    tools = {tool.name: tool for tool, _ in found.rows}
    return dict(sorted(tools.items())), found.complete


def ruled_by(durable: DurableAgent, pattern: str, tools: dict[str, ToolDefinition]) -> dict[str, ToolDefinition]:
    """Those of the tools that the policy `pattern` applies to."""
    return {name: tool for name, tool in tools.items() if durable.rule(name) == pattern}


def declared_result(durable: DurableAgent, tool: str) -> Any:
    """The type or JSON Schema that a tool declares for its results; `None` where it declares none, or isn't known."""
    definition = static_tools(durable)[0].get(tool)
    return None if definition is None else result_of(definition)
