"""What can be known of a declared agent without a run, as JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pydantic_ai.models import Model
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
from perdure.checks import static_tools
from perdure.contracts import Json


def describe_agent(durable: DurableAgent) -> Json:
    """The agent, its limits and its tools with the policies that apply."""
    names, complete = static_tools(durable)
    known = {name: tool for toolset in durable.agent.toolsets for name, tool in _definitions(toolset).items()}
    limits = durable.limits.model_dump(mode="json", exclude_none=True)
    return {
        "name": durable.name,
        "version": durable.version,
        "model": _model(durable.agent.model),
        "models": {key: _model(model) for key, model in durable.models.items()},
        "output": _type_name(durable.agent.output_type),
        "params": _type_name(durable.params_type) if durable.params_type is not None else None,
        "limits": limits,
        "tools": [_describe_tool(durable, name, known.get(name)) for name in names],
        "all_tools_known": complete,
    }


def _describe_tool(durable: DurableAgent, name: str, tool: ToolDefinition | None) -> Json:
    policy = durable.policy(name)
    own = tool.timeout if tool else None
    options = policy.options(tool_timeout=own)
    return {
        "name": name,
        "description": (tool.description if tool else None) or "",
        "schema": tool.parameters_json_schema if tool else None,
        "effect": options.effect,
        "attempts": options.attempts,
        "timeout": options.timeout if options.timeout is not None else own,
    }


def _definitions(toolset: AbstractToolset[Any]) -> dict[str, ToolDefinition]:
    """The tools of a toolset by the names the model sees, as far as they can be known."""
    match toolset:
        case FunctionToolset():
            return {name: tool.tool_def for name, tool in toolset.tools.items()}
        case ExternalToolset():
            return {tool.name: tool for tool in toolset.tool_defs}
        case CombinedToolset():
            return {name: tool for part in toolset.toolsets for name, tool in _definitions(part).items()}
        case PrefixedToolset():
            prefixed = {f"{toolset.prefix}_{name}": tool for name, tool in _definitions(toolset.wrapped).items()}
            return {name: replace(tool, name=name) for name, tool in prefixed.items()}
        case RenamedToolset():
            new = {old: new for new, old in toolset.name_map.items()}
            renamed = {new.get(name, name): tool for name, tool in _definitions(toolset.wrapped).items()}
            return {name: replace(tool, name=name) for name, tool in renamed.items()}
        case WrapperToolset():
            return _definitions(toolset.wrapped)
        case _:
            return {}


def _model(model: Model | str | None) -> str | None:
    return model.model_id if isinstance(model, Model) else model


def _type_name(kind: Any) -> str:
    if isinstance(kind, list | tuple):
        return " | ".join(_type_name(member) for member in cast("list[Any]", kind))
    return getattr(kind, "__name__", None) or str(kind)
