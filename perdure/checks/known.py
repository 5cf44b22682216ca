"""The tools of an agent that can be known without a run, by the names the model sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    ExternalToolset,
    FunctionToolset,
    PrefixedToolset,
    RenamedToolset,
    WrapperToolset,
)

from perdure.agent import DurableAgent
from perdure.toolsets.target import result_of

Shown = list[tuple[str, ToolDefinition, AbstractToolset[Any]]]
"""Each tool's name for the model, its definition, and the toolset that has it."""


def static_tools(durable: DurableAgent) -> tuple[dict[str, ToolDefinition], bool]:
    """The agent's tools that can be known without a run, by name, sorted; and whether those are all of them."""
    found: dict[str, ToolDefinition] = {}
    complete = True
    for toolset in durable.agent.toolsets:
        tools = shown(toolset)
        found |= {name: tool for name, tool, _ in tools or []}
        complete = complete and tools is not None
    return dict(sorted(found.items())), complete


def ruled_by(durable: DurableAgent, pattern: str, tools: dict[str, ToolDefinition]) -> dict[str, ToolDefinition]:
    """Those of the tools that the policy `pattern` applies to."""
    return {name: tool for name, tool in tools.items() if durable.rule(name) == pattern}


def declared_result(durable: DurableAgent, tool: str) -> Any:
    """The type or JSON Schema that a tool declares for its results; `None` where it declares none, or isn't known."""
    definition = static_tools(durable)[0].get(tool)
    return None if definition is None else result_of(definition)


def shown(toolset: AbstractToolset[Any]) -> Shown | None:
    """What a toolset shows to the model; `None` where only a run can tell."""
    match toolset:
        case FunctionToolset():
            return [(name, tool.tool_def, toolset) for name, tool in toolset.tools.items()]
        case ExternalToolset():
            return [(tool.name, replace(tool, kind="external"), toolset) for tool in toolset.tool_defs]
        case CombinedToolset():
            parts = [shown(part) for part in toolset.toolsets]
            return None if None in parts else [tool for part in parts for tool in part or []]
        case PrefixedToolset():
            return _named(shown(toolset.wrapped), lambda name: f"{toolset.prefix}_{name}")
        case RenamedToolset():
            new = {old: new for new, old in toolset.name_map.items()}
            return _named(shown(toolset.wrapped), lambda name: new.get(name, name))
        case WrapperToolset():
            return shown(toolset.wrapped)
        case _:
            return None


def _named(tools: Shown | None, rename: Callable[[str], str]) -> Shown | None:
    if tools is None:
        return None
    return [(rename(name), replace(tool, name=rename(name)), toolset) for name, tool, toolset in tools]


def every(toolset: AbstractToolset[Any]) -> Iterator[AbstractToolset[Any]]:
    """The toolset and all that it wraps or combines."""
    yield toolset
    if isinstance(toolset, WrapperToolset):
        yield from every(toolset.wrapped)
    elif isinstance(toolset, CombinedToolset):
        for part in toolset.toolsets:
            yield from every(part)
