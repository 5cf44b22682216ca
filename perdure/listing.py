"""The tools of an agent as a step would list them, as far as that can be known without a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    DeferredLoadingToolset,
    ExternalToolset,
    FunctionToolset,
    IncludeReturnSchemasToolset,
    PrefixedToolset,
    RenamedToolset,
    SetMetadataToolset,
    WrapperToolset,
)

from perdure.toolsets.namespace import Namespace

Definitions = list[ToolDefinition]


def listed(toolset: AbstractToolset[Any]) -> Definitions | None:
    """The definitions of a toolset, but for metadata; `None` where only a run can tell: filters, `prepare`, servers.

    Without the tools of a capability that is loaded on demand: nobody searches for those.
    """
    match toolset:
        case FunctionToolset():
            fixed = all(tool.prepare is None for tool in toolset.tools.values())
            return [tool.tool_def for tool in toolset.tools.values()] if fixed else None
        case ExternalToolset():
            return list(toolset.tool_defs)
        case CombinedToolset():
            parts = [listed(part) for part in toolset.toolsets]
            return None if None in parts else [tool for part in parts for tool in part or []]
        case WrapperToolset():
            inner = listed(toolset.wrapped)
            shown = _wrapped(toolset)
            return None if inner is None or shown is None else [one for tool in inner if (one := shown(tool))]
        case _:
            return None


def _wrapped(toolset: WrapperToolset[Any]) -> Callable[[ToolDefinition], ToolDefinition | None] | None:
    """What a wrapper makes of each definition; `None` where only a run can tell."""
    match toolset:
        case Namespace():
            return lambda tool: toolset.shown(replace(tool, name=f"{toolset.prefix}_{tool.name}"))
        case PrefixedToolset():
            return lambda tool: replace(tool, name=f"{toolset.prefix}_{tool.name}")
        case RenamedToolset():
            new = {old: new for new, old in toolset.name_map.items()}
            return lambda tool: replace(tool, name=new.get(tool.name, tool.name))
        case DeferredLoadingToolset():
            names = toolset.tool_names
            return lambda tool: replace(tool, defer_loading=True) if names is None or tool.name in names else tool
        case SetMetadataToolset() | IncludeReturnSchemasToolset():
            return lambda tool: tool
        case _:
            owner = getattr(toolset, "capability", None)
            if not isinstance(owner, AbstractCapability):
                return None
            return lambda tool: None if owner.defer_loading is True else tool


def namespaces_in(toolset: AbstractToolset[Any]) -> Iterator[Namespace]:
    """The namespaces in a toolset."""
    if isinstance(toolset, Namespace):
        yield toolset
    if isinstance(toolset, WrapperToolset):
        yield from namespaces_in(toolset.wrapped)
    elif isinstance(toolset, CombinedToolset):
        for part in toolset.toolsets:
            yield from namespaces_in(part)
