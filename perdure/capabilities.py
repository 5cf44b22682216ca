"""Which capabilities of Pydantic AI can't be carried, and why.

perdure runs each model request and each tool call as an agent run of its own, so what Pydantic AI does once per run
would happen once per activity. Such hooks are refused by name when the `App` is built, not silently changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import (
    AbstractCapability,
    BatchModelRequests,
    Hooks,
    Instrumentation,
    ModelFallback,
    NativeTool,
    UseThreadExecutor,
    WrapperCapability,
)
from pydantic_ai.durable_exec import BaseDurabilityCapability
from pydantic_ai.native_tools import AbstractNativeTool

from perdure.errors import DeclarationError

ONCE_PER_RUN = (
    "before_run",
    "after_run",
    "wrap_run",
    "on_run_error",
    "before_node_run",
    "after_node_run",
    "wrap_node_run",
    "on_node_run_error",
    "wrap_run_event_stream",
    "on_event",
)
"""Hooks that Pydantic AI calls once for a run or for its graph, which here isn't one run."""
HARMLESS = (Instrumentation, UseThreadExecutor, ModelFallback)
"""Capabilities of Pydantic AI whose hooks of the run do as well once per activity."""
NOT_BUILT = {
    "handle_deferred_tool_calls": "it would answer or run tool calls inside the model request, outside their activity",
    "get_workspace": "workspaces aren't carried from one activity to the next yet",
    "get_model": "models chosen by a capability aren't kept in history yet; use DurableAgent(models=…)",
}


def all_of(agent: AbstractAgent[Any, Any]) -> list[AbstractCapability[Any]]:
    """The capabilities of an agent, also those that others combine."""
    found: list[AbstractCapability[Any]] = []
    agent.root_capability.apply(found.append)
    return found


def on_demand(agent: AbstractAgent[Any, Any]) -> set[str]:
    """The ids of the capabilities that the model loads when it needs them. One without an id is refused."""
    return {capability.id for capability in all_of(agent) if capability.defer_loading is True and capability.id}


def check_capabilities(agent: AbstractAgent[Any, Any], where: str) -> None:
    """Raise `DeclarationError` for the first capability that can't be carried."""
    for capability in all_of(agent):
        while isinstance(capability, WrapperCapability):
            capability = capability.wrapped
        if not isinstance(capability, HARMLESS):
            _check_capability(capability, where)


def _check_capability(capability: AbstractCapability[Any], where: str) -> None:
    name = type(capability).__name__
    _check_given(capability, where)
    if isinstance(capability, BaseDurabilityCapability):
        raise DeclarationError(f"{where}: {name} makes the agent durable a second time; remove it")
    if isinstance(capability, BatchModelRequests):
        raise DeclarationError(f"{where}: {name} keeps a request open longer than an activity; it isn't carried")
    if capability.defer_loading and capability.id is None:
        raise DeclarationError(
            f"{where}: {name} is loaded on demand and has no id. Pydantic AI would give it another one in every step, "
            f"so that what was loaded is forgotten: {name}(…, id=…)"
        )
    hooks = overridden(capability)
    for hook in ONCE_PER_RUN:
        if hook in hooks:
            raise DeclarationError(
                f"{where}: {name}.{hook} happens once per run in Pydantic AI and would happen once per activity here. "
                "Use a hook of the request or of the tool (before_model_request, before_tool_execute, …)"
            )
    for hook, reason in NOT_BUILT.items():
        if hook in hooks:
            raise DeclarationError(f"{where}: {name}.{hook} can't be carried: {reason}")


def _check_given(capability: AbstractCapability[Any], where: str) -> None:
    """Pydantic AI takes whatever is no capability for a function that makes one in each run, and a class for one that
    makes a tool."""
    given: Any = getattr(capability, "capability_func", None)
    if isinstance(given, AbstractNativeTool):
        tool_name = f"{type(given).__name__}(…)"
        raise DeclarationError(f"{where}: capabilities=[…] has {tool_name}, a tool: write NativeTool({tool_name})")
    tool: Any = capability.tool if isinstance(capability, NativeTool) else None
    if isinstance(tool, type):
        raise DeclarationError(
            f"{where}: NativeTool({tool.__name__}) has the class in place of a tool: NativeTool({tool.__name__}())"
        )


def overridden(capability: AbstractCapability[Any]) -> set[str]:
    """The hooks that a capability really has.

    `Hooks` defines every method and calls what was registered, so there the registry tells (a private attribute, read
    here only and pinned by tests/test_pydantic_ai_contract.py).
    """
    names = (*ONCE_PER_RUN, *NOT_BUILT)
    if isinstance(capability, Hooks):
        registry = cast("Mapping[str, list[Any]]", getattr(capability, "_registry", {}))
        return {name for name in names if registry.get(name)}
    kind = type(capability)
    return {name for name in names if getattr(kind, name) is not getattr(AbstractCapability, name)}
