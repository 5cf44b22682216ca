"""What can be wrong in a declaration, checked when the `App` is built. Each error names what is known."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, cast

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
from perdure.capabilities import check_capabilities
from perdure.errors import DeclarationError
from perdure.schemas import check_schema, check_type
from perdure.toolsets.read_result import read_result
from perdure.toolsets.target import check_policy, result_of, target_of

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider accepts as the name of a tool."""


def check_agent(durable: DurableAgent) -> None:
    """Raise `DeclarationError` for the first thing that is wrong with the agent."""
    agent = durable.agent
    if not agent.name:
        raise DeclarationError('an agent needs a name, which a run asks for: Agent(…, name="support")')
    where = f"agent {agent.name!r}"
    if agent.event_stream_handler is not None:
        raise DeclarationError(
            f"{where}: event_stream_handler would be called anew in every activity; read the live text of a run instead"
        )
    check_capabilities(agent, where)
    for toolset in agent.toolsets:
        _check_toolset(toolset, where)
    _check_policies(durable, where)
    _check_targets(durable, where)
    _check_reader(durable, where)
    _check_params(durable, where)


def static_tools(durable: DurableAgent) -> tuple[dict[str, ToolDefinition], bool]:
    """The agent's tools that can be known without a run, by name, sorted; and whether those are all of them."""
    found: dict[str, ToolDefinition] = {}
    complete = True
    for toolset in durable.agent.toolsets:
        tools = _tools(toolset)
        found |= tools or {}
        complete = complete and tools is not None
    return dict(sorted(found.items())), complete


def declared_result(durable: DurableAgent, tool: str) -> Any:
    """The type or JSON Schema that a tool declares for its results; `None` where it declares none, or isn't known."""
    definition = static_tools(durable)[0].get(tool)
    return None if definition is None else result_of(definition)


def _tools(toolset: AbstractToolset[Any]) -> dict[str, ToolDefinition] | None:
    """What a toolset shows to the model, by the names the model sees; `None` where only a run can tell."""
    match toolset:
        case FunctionToolset():
            return {name: tool.tool_def for name, tool in toolset.tools.items()}
        case ExternalToolset():
            return {definition.name: definition for definition in toolset.tool_defs}
        case CombinedToolset():
            parts = [_tools(part) for part in toolset.toolsets]
            return None if None in parts else {name: tool for part in parts for name, tool in (part or {}).items()}
        case PrefixedToolset():
            return _named(_tools(toolset.wrapped), lambda name: f"{toolset.prefix}_{name}")
        case RenamedToolset():
            new = {old: new for new, old in toolset.name_map.items()}
            return _named(_tools(toolset.wrapped), lambda name: new.get(name, name))
        case WrapperToolset():
            return _tools(toolset.wrapped)
        case _:
            return None


def _named(tools: dict[str, ToolDefinition] | None, shown: Callable[[str], str]) -> dict[str, ToolDefinition] | None:
    if tools is None:
        return None
    return {shown(name): replace(tool, name=shown(name)) for name, tool in tools.items()}


def _check_toolset(toolset: AbstractToolset[Any], where: str) -> None:
    for part in _every(toolset):
        if isinstance(part, WrapperToolset | CombinedToolset):
            continue
        if part.id is None:
            raise DeclarationError(
                f'{where}: {part.label} has no id. Give it one: {type(part).__name__}(…, id="orders"); '
                "ids are wire format, so keep them once runs exist"
            )
        if isinstance(part, FunctionToolset):
            _check_functions(part, where)
        if isinstance(part, ExternalToolset):
            _check_schemas(part, where)


def _check_schemas(toolset: ExternalToolset[Any], where: str) -> None:
    for tool in toolset.tool_defs:
        check_schema(tool.parameters_json_schema, f"{where}: tool {tool.name!r}: parameters_json_schema")
        if tool.return_schema is not None:
            check_schema(tool.return_schema, f"{where}: tool {tool.name!r}: return_schema")


def _check_functions(toolset: FunctionToolset[Any], where: str) -> None:
    for name, tool in toolset.tools.items():
        if path := _write_only(tool.function_schema.json_schema):
            raise DeclarationError(
                f"{where}: tool {name!r}: the argument {path!r} is write-only (a secret): written as JSON it becomes "
                "asterisks, and asterisks are what would run. Pass a reference and look the secret up in the tool."
            )


def _write_only(schema: Any, path: str = "") -> str | None:
    """The path of the first write-only property of a JSON schema."""
    if isinstance(schema, list):
        return next((found for item in cast("list[Any]", schema) if (found := _write_only(item, path))), None)
    if not isinstance(schema, dict):
        return None
    properties = cast("dict[str, Any]", schema)
    if properties.get("writeOnly") is True:
        return path or "(root)"
    for name, value in properties.items():
        at = path if name in ("properties", "anyOf", "items", "$defs") else f"{path}.{name}".strip(".")
        if found := _write_only(value, at):
            return found
    return None


def _every(toolset: AbstractToolset[Any]) -> Iterator[AbstractToolset[Any]]:
    yield toolset
    if isinstance(toolset, WrapperToolset):
        yield from _every(toolset.wrapped)
    elif isinstance(toolset, CombinedToolset):
        for part in toolset.toolsets:
            yield from _every(part)


def _check_policies(durable: DurableAgent, where: str) -> None:
    tools, complete = static_tools(durable)
    names = list(tools)
    for name in names:
        if not TOOL_NAME.fullmatch(name):
            raise DeclarationError(f"{where}: the tool name {name!r} is not 1 to 64 of A-Z, a-z, 0-9, _ and -")
    for pattern, policy in durable.policies.items():
        check_function(f"{where}: policy {pattern!r}: dispatch", policy.dispatch, 1)
        if policy.result is not None:
            check_type(policy.result, f"{where}: policy {pattern!r}: result")
        if complete and not any(fnmatchcase(name, pattern) for name in names):
            raise DeclarationError(f"{where}: policy {pattern!r} matches no tool. Known tools: {names}")


def _check_targets(durable: DurableAgent, where: str) -> None:
    """What somebody else runs can't keep to every policy."""
    for name, tool in static_tools(durable)[0].items():
        target = target_of(tool)
        if target is not None:
            check_policy(target, durable.policy(name), f"{where}: tool {name!r}, policy {durable.rule(name)!r}")


def _check_reader(durable: DurableAgent, where: str) -> None:
    """A result that is kept must be readable for the model."""
    keeping = [name for name, policy in durable.policies.items() if policy.on_large_result == "store"]
    has_reader = any(part is read_result for toolset in durable.agent.toolsets for part in _every(toolset))
    if keeping and not has_reader:
        raise DeclarationError(
            f"{where}: policies {keeping} keep large results, which the model reads with a tool that the agent hasn't: "
            "Agent(…, toolsets=[read_result]), from perdure.toolsets.read_result"
        )


def check_function(what: str, function: Any, arguments: int) -> None:
    """Raise `DeclarationError` unless `function` is `None` or an async callable of so many arguments."""
    if function is None:
        return
    call = function if inspect.isroutine(function) else getattr(function, "__call__", None)  # noqa: B004
    if not inspect.iscoroutinefunction(call):
        raise DeclarationError(f"{what}={function!r} isn't an async function: it would block the worker")
    try:
        inspect.signature(function).bind(*([None] * arguments))
    except TypeError as error:
        raise DeclarationError(f"{what}={function!r} can't be called with {arguments} argument(s): {error}") from None


def _check_deps(deps: Any, where: str) -> None:
    """`deps` is a function that takes params and resources."""
    what = "DurableAgent(deps=…) takes a function of (params, resources), sync or async, called on the worker"
    if not callable(deps):
        raise DeclarationError(f"{where}: {what}; got {type(deps).__name__}")
    try:
        inspect.signature(deps).bind(None, None)
    except TypeError as error:
        raise DeclarationError(
            f"{where}: {what}; {getattr(deps, '__name__', deps)!r} can't be called so: {error}"
        ) from None
    except ValueError:
        return  # a builtin without a signature: it shows when it is called


def _check_params(durable: DurableAgent, where: str) -> None:
    deps_type = getattr(durable.agent, "deps_type", None)
    if durable.agent.model is None and not durable.models:
        raise DeclarationError(f"{where} has no model: Agent(model, …), or DurableAgent(models={{…}})")
    if durable.deps is not None:
        _check_deps(durable.deps, where)
    needs_deps = deps_type not in (None, type(None), object, Any)
    if needs_deps and durable.deps is None and durable.params_type is None:
        raise DeclarationError(
            f"{where}: its deps_type is {getattr(deps_type, '__name__', deps_type)!r}, so give "
            "DurableAgent(deps=…), a function of (params, resources) that builds it on the worker, or params_type=… "
            "where the params themselves are the deps"
        )
