"""Whether each tool of an agent can be what it says: its name, its types, its function."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from io import IOBase
from typing import IO, Any, cast, get_args, get_origin

from pydantic_ai import RunContext
from pydantic_ai.messages import ToolReturn
from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    ExternalToolset,
    FunctionToolset,
    PrefixedToolset,
    WrapperToolset,
)

from perdure.agent import DurableAgent
from perdure.contracts import Json
from perdure.errors import DeclarationError
from perdure.listing import every, shown
from perdure.names import TOOL_NAME, check_tool_name
from perdure.schemas import check_schema
from perdure.toolsets.callables import code_of
from perdure.toolsets.contract_toolset import ContractToolset
from perdure.toolsets.json_types import check_readable, hints_of, lost_in, name_of, read_once, schema_of


def check_tools(durable: DurableAgent, where: str) -> None:
    """Raise `DeclarationError` for the first tool that is declared wrongly, naming it."""
    for toolset in durable.agent.toolsets:
        for part in every(toolset):
            _check_toolset(part, where)
    _check_ids(durable, where)
    _check_names(durable, where)
    for found in map(shown, durable.agent.toolsets) if durable.require_descriptions else ():
        for tool, _ in found.rows if found.exact else ():
            _check_description(f"{where}: tool {tool.name!r}", tool.description, tool.parameters_json_schema)


def _check_toolset(toolset: AbstractToolset[Any], where: str) -> None:
    if isinstance(toolset, WrapperToolset | CombinedToolset):
        return
    _check_misplaced(getattr(toolset, "toolset_func", None), where)
    if toolset.id is None:
        raise DeclarationError(
            f'{where}: {toolset.label} has no id. Give it one: {type(toolset).__name__}(…, id="orders"); '
            "ids are wire format, so keep them once runs exist"
        )
    if isinstance(toolset, ContractToolset) and (unserved := toolset.unserved):
        raise DeclarationError(
            f"{where}: toolset {toolset.id!r} has contracts that nothing serves: {unserved}. Give each a handler, "
            "an external system or a target"
        )
    if isinstance(toolset, FunctionToolset):
        for tool in cast("FunctionToolset[Any]", toolset).tools.values():
            _check_function(tool, f"{where}: tool {tool.name!r}")
    if isinstance(toolset, ExternalToolset):
        for definition in toolset.tool_defs:
            what = f"{where}: tool {definition.name!r}"
            check_schema(definition.parameters_json_schema, f"{what}: parameters_json_schema")
            if definition.return_schema is not None:
                check_schema(definition.return_schema, f"{what}: return_schema")


def _check_misplaced(given: Any, where: str) -> None:
    """Pydantic AI takes whatever is no toolset for a function that makes one in each run."""
    if isinstance(given, Tool):
        raise DeclarationError(f"{where}: the tool {given.name!r} is among its toolsets: Agent(…, tools=[…])")
    if given is not None and not callable(given):
        raise DeclarationError(f"{where}: toolsets=[…] has {given!r}, which is neither a toolset nor makes one")


def _check_function(tool: Tool[Any], what: str) -> None:
    """The function of a tool: it has one result, and its types survive JSON."""
    check_readable(tool.function_schema.json_schema, what, "tool")
    call = code_of(tool.function)
    if inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise DeclarationError(f"{what}: its function yields; a tool has one result, so let it return a list")
    hints = hints_of(call)
    _check_result(hints.pop("return", Any), tool, what)
    _check_arguments(hints, what)


def _check_arguments(hints: Mapping[str, Any], what: str) -> None:
    """Their types have a JSON Schema, or Pydantic AI had refused the tool; what JSON loses of them is seen here."""
    for name, hint in hints.items():
        if (get_origin(hint) or hint) is RunContext:
            continue
        if (inner := read_once(hint, argument=True)) is not None:
            raise DeclarationError(
                f"{what}: the argument {name!r} is {name_of(inner)}, which can be read once only; take a list"
            )
        if lost := lost_in(hint):
            raise DeclarationError(f"{what}: the argument {name!r} doesn't survive JSON: {lost}")


def _check_result(hint: Any, tool: Tool[Any], what: str) -> None:
    """Pydantic AI only warns of a result that has no JSON Schema, and goes on with an empty one."""
    if (get_origin(hint) or hint) is ToolReturn:
        hint = next(iter(get_args(hint)), Any)
    if (inner := read_once(hint)) is not None:
        instead = (
            "return its text"
            if issubclass(get_origin(inner) or inner, (IOBase, IO))
            else "return a list, or let it be async"
        )
        raise DeclarationError(f"{what}: its result is {name_of(inner)}, which can be read once only; {instead}")
    if not tool.function_schema.return_schema:
        schema_of(hint, f"{what}: its result", written=True)


def _check_ids(durable: DurableAgent, where: str) -> None:
    """No two toolsets of an agent have one id: it says whose a tool is, in messages and in sessions that are held."""
    taken: dict[str, AbstractToolset[Any]] = {}
    for toolset in (part for own in durable.agent.toolsets for part in every(own)):
        if isinstance(toolset, WrapperToolset | CombinedToolset) or toolset.id is None:
            continue
        if taken.setdefault(toolset.id, toolset) is not toolset:
            raise DeclarationError(
                f"{where}: two toolsets have the id {toolset.id!r}: {taken[toolset.id].label} and {toolset.label}. "
                "Give one of them another"
            )


def _check_names(durable: DurableAgent, where: str) -> None:
    """Names are valid, prefixes too, and no two tools that every run shows have one. Of others only a run can tell."""
    taken: dict[str, AbstractToolset[Any]] = {}
    for toolset in durable.agent.toolsets:
        _check_prefixes(toolset, where)
        found = shown(toolset)
        for tool, owner in found.rows:
            if found.complete:
                check_tool_name(tool.name, where)
            if found.exact and tool.name in taken:
                raise DeclarationError(
                    f"{where}: {owner.label} and {taken[tool.name].label} both have a tool {tool.name!r}. "
                    f"{toolset.tool_name_conflict_hint}"
                )
            if found.exact:
                taken[tool.name] = owner


def _check_prefixes(toolset: AbstractToolset[Any], where: str) -> None:
    """Of a server's tools the names aren't known, but what they begin with is."""
    for part in every(toolset):
        if isinstance(part, PrefixedToolset) and not TOOL_NAME.fullmatch(part.prefix):
            raise DeclarationError(f"{where}: the prefix {part.prefix!r} is not 1 to 64 of A-Z, a-z, 0-9, _ and -")


def _check_description(what: str, description: str | None, schema: Json) -> None:
    """For `DurableAgent(require_descriptions=True)`: a model chooses by what it is told."""
    if not (description or "").strip():
        raise DeclarationError(f"{what} has no description: say in its docstring what it does and when to use it")
    properties: Json = schema.get("properties", {})
    if missing := [name for name, value in properties.items() if not _described(value, schema)]:
        raise DeclarationError(
            f"{what}: no description of {missing}. Add them to the docstring (Args: …), or as Field(description=…)"
        )


def _described(value: Any, schema: Json) -> bool:
    """Whether a property has a description, of its own or that of the type it refers to."""
    if not isinstance(value, dict):
        return False
    own = cast("Json", value)
    named: Json = schema.get("$defs", {}).get(str(own.get("$ref", "")).rpartition("/")[2], {})
    return bool(own.get("description") or named.get("description"))
