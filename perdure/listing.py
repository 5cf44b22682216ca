"""What the toolsets of an agent show to the model, as far as that can be known without a run.

One walk over toolsets, for all that is checked, listed or exported when an `App` is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, cast

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import (
    AbstractToolset,
    ApprovalRequiredToolset,
    CombinedToolset,
    DeferredLoadingToolset,
    ExternalToolset,
    FilteredToolset,
    FunctionToolset,
    IncludeReturnSchemasToolset,
    PrefixedToolset,
    PreparedToolset,
    RenamedToolset,
    SetMetadataToolset,
    WrapperToolset,
)

from perdure.toolsets.namespace import Namespace

Definitions = list[ToolDefinition]
Change = Callable[[ToolDefinition], ToolDefinition]


class Shown(NamedTuple):
    """What a toolset shows."""

    rows: list[tuple[ToolDefinition, AbstractToolset[Any]]]
    """Each tool, as the model sees it, and the toolset that has it."""
    exact: bool
    """Every run shows just these, as they are here."""
    complete: bool
    """No run shows others, or these under other names."""


def shown(toolset: AbstractToolset[Any]) -> Shown:
    """What a toolset shows to the model. Nothing is known of one that asks somebody else (an MCP server)."""
    match toolset:
        case FunctionToolset():
            tools = list(toolset.tools.values())
            fixed = all(tool.prepare is None for tool in tools)
            return Shown([(tool.tool_def, toolset) for tool in tools], fixed, fixed)
        case ExternalToolset():
            return Shown([(replace(tool, kind="external"), toolset) for tool in toolset.tool_defs], True, True)
        case CombinedToolset():
            return joined(shown(part) for part in toolset.toolsets)
        case WrapperToolset():
            inner, (exact, complete) = shown(toolset.wrapped), kept(toolset)
            change = _changed(toolset)
            rows = [(change(tool), owner) for tool, owner in inner.rows]
            return Shown(rows, inner.exact and exact, inner.complete and complete)
        case _:
            return Shown([], False, False)


def joined(parts: Iterable[Shown]) -> Shown:
    """What several toolsets show together."""
    found = list(parts)
    rows = [row for part in found for row in part.rows]
    return Shown(rows, all(part.exact for part in found), all(part.complete for part in found))


def kept(toolset: WrapperToolset[Any]) -> tuple[bool, bool]:
    """Whether what is wrapped is still shown in every run, and nothing else in any."""
    match toolset:
        case (
            PrefixedToolset()
            | RenamedToolset()
            | DeferredLoadingToolset()
            | SetMetadataToolset()
            | IncludeReturnSchemasToolset()
            | ApprovalRequiredToolset()
        ):
            return True, True
        case FilteredToolset() | PreparedToolset():
            return False, True  # Pydantic AI refuses a `prepared` that renames or adds
        case _:
            owned = _owner(toolset) is not None
            return owned, owned


def _changed(toolset: WrapperToolset[Any]) -> Change:
    """What a wrapper makes of each definition."""
    match toolset:
        case Namespace():
            return lambda tool: toolset.shown(replace(tool, name=f"{toolset.prefix}_{tool.name}"))
        case PrefixedToolset():
            return lambda tool: replace(tool, name=f"{toolset.prefix}_{tool.name}")
        case RenamedToolset():
            new = {old: new for new, old in toolset.name_map.items()}
            return lambda tool: replace(tool, name=new.get(tool.name) or tool.name)
        case DeferredLoadingToolset():
            names = toolset.tool_names
            return lambda tool: replace(tool, defer_loading=True) if names is None or tool.name in names else tool
        case SetMetadataToolset():
            return lambda tool: replace(tool, metadata={**(tool.metadata or {}), **toolset.metadata})
        case IncludeReturnSchemasToolset():
            return lambda tool: replace(tool, include_return_schema=tool.include_return_schema is not False)
        case _:
            owner = _owner(toolset)
            return (lambda tool: tool) if owner is None else (lambda tool: _owned(tool, owner))


def _owner(toolset: WrapperToolset[Any]) -> AbstractCapability[Any] | None:
    """The capability that a toolset is of, where it is of one."""
    owner: Any = getattr(toolset, "capability", None)
    return cast("AbstractCapability[Any]", owner) if isinstance(owner, AbstractCapability) else None


def _owned(tool: ToolDefinition, owner: AbstractCapability[Any]) -> ToolDefinition:
    """A tool of a capability: one that is loaded on demand claims all tools beneath it."""
    deferred = owner.defer_loading is True
    id = owner.id if deferred or tool.capability_id is None else tool.capability_id
    return replace(tool, capability_id=id, defer_loading=deferred or tool.defer_loading)


def listed(toolset: AbstractToolset[Any]) -> Definitions | None:
    """The definitions of a toolset; `None` where only a run can tell: filters, `prepare`, servers."""
    found = shown(toolset)
    return [tool for tool, _ in found.rows] if found.exact else None


def every(toolset: AbstractToolset[Any]) -> Iterator[AbstractToolset[Any]]:
    """The toolset and all that it wraps or combines."""
    yield toolset
    if isinstance(toolset, WrapperToolset):
        yield from every(toolset.wrapped)
    elif isinstance(toolset, CombinedToolset):
        for part in toolset.toolsets:
            yield from every(part)


def namespaces_in(toolset: AbstractToolset[Any]) -> Iterator[Namespace]:
    """The namespaces in a toolset."""
    return (part for part in every(toolset) if isinstance(part, Namespace))
