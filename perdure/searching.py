"""What can be wrong with hidden tools, with the search for them, and with tools that the provider runs.

Checked when the `App` is built, for models that are there then. Pydantic AI adds its `ToolSearch` to every agent, so a
hidden tool can be found unless the search was told to be one that its model hasn't.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.models import Model
from pydantic_ai.tools import ToolDefinition

from perdure.agent import DurableAgent
from perdure.capabilities import all_of, on_demand
from perdure.errors import DeclarationError
from perdure.listing import listed, namespaces_in
from perdure.native import native_problem

SEARCH = ToolSearch.function_tool_name


def check_search(durable: DurableAgent, where: str) -> None:
    """Raise `DeclarationError` for a search that could find nothing, and for what no request could be made with."""
    tools, exact = _searchable(durable)
    search = _the_search(durable, where)
    hidden = [tool.name for tool in tools if tool.defer_loading]
    if not hidden and exact and search != ToolSearch():
        raise DeclarationError(
            f"{where}: ToolSearch has nothing to search: no tool is hidden. Hide some: "
            "toolset.defer_loading(), Tool(…, defer_loading=True), or namespace(…) from perdure.toolsets.namespace"
        )
    if hidden and search.max_results == 0:
        raise DeclarationError(f"{where}: ToolSearch(max_results=0) finds none of the hidden tools {hidden[:5]}")
    if hidden and SEARCH in [tool.name for tool in tools]:
        raise DeclarationError(f"{where}: the tool name {SEARCH!r} is that of the search for hidden tools; rename it")
    _check_names(durable, tools, where)
    _check_models(durable, where)


def lookups(durable: DurableAgent) -> list[str]:
    """The tools that Pydantic AI adds to the agent's own; a policy may be for them."""
    tools, exact = _searchable(durable)
    hidden = not exact or any(tool.defer_loading for tool in tools)
    return [SEARCH] * hidden + ["load_capability"] * bool(on_demand(durable.agent))


def _searchable(durable: DurableAgent) -> tuple[list[ToolDefinition], bool]:
    """The tools that every run has, and whether those are all: without those of a capability that is loaded on demand,
    which nobody searches for."""
    late = on_demand(durable.agent)
    parts = [listed(toolset) for toolset in durable.agent.toolsets]
    return [tool for part in parts for tool in part or [] if tool.capability_id not in late], None not in parts


def _the_search(durable: DurableAgent, where: str) -> ToolSearch[Any]:
    searches = [capability for capability in all_of(durable.agent) if isinstance(capability, ToolSearch)]
    if len(searches) > 1:
        raise DeclarationError(f"{where} has {len(searches)} ToolSearch capabilities: a model is offered one search")
    return searches[0] if searches else ToolSearch()


def _check_names(durable: DurableAgent, tools: list[ToolDefinition], where: str) -> None:
    """A name means one thing in a search. That names of tools differ is checked with the other tools."""
    spaces = Counter(space.prefix for toolset in durable.agent.toolsets for space in namespaces_in(toolset))
    if twice := [name for name, count in spaces.items() if count > 1]:
        raise DeclarationError(f"{where}: two namespaces are named {twice[0]!r}: a search by that name means one")
    if both := sorted(set(spaces) & {tool.name for tool in tools}):
        raise DeclarationError(f"{where}: {both[0]!r} is a namespace and a tool: a search by that name means one")


def _check_models(durable: DurableAgent, where: str) -> None:
    """A model that is named by a string is built on the worker, and asked when a run with it begins."""
    for model in (durable.agent.model, *durable.models.values()):
        if isinstance(model, Model) and (problem := native_problem(durable.agent, model)):
            raise DeclarationError(f"{where}: {model.model_id}: {problem}")
