"""What a step lists of the hidden tools of namespaces: those that it can use. Pydantic AI looks at each tool that it is
given a dozen times in a step, which with hundreds takes longer than all the rest.

Everything is listed where everything is needed: for the search itself, for a provider that is sent hidden tools too,
and where a capability that is loaded on demand would show them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from pydantic_ai import AgentRun
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model

from perdure.capabilities import on_demand
from perdure.toolsets.namespace import lists_only, only


@asynccontextmanager
async def usable(
    agent: AbstractAgent[Any, Any], model: Model, messages: Sequence[ModelMessage]
) -> AsyncGenerator[None]:
    """While entered, namespaces list what was found, and what the last response calls."""
    last = messages[-1] if messages else None
    called = {call.tool_name for call in last.tool_calls} if isinstance(last, ModelResponse) else set[str]()
    everything = ToolSearch.function_tool_name in called or _sends_hidden(model) or on_demand(agent)
    with nullcontext() if everything else only(called):
        yield


def _sends_hidden(model: Model) -> bool:
    """Whether the provider gets the definitions of hidden tools, to search them itself or to show them later."""
    try:
        profile = model.profile
    except NotImplementedError:  # one that falls back on others has none
        return True
    supported = profile.get("supported_native_tools", frozenset())
    return profile.get("tool_deferral_mode") is not None or any(kind.kind == "tool_search" for kind in supported)


async def list_called(run: AgentRun[Any, Any], names: Collection[str]) -> None:
    """List the tools of these names too: a hidden one that the model calls is refused as that, and not as unknown."""
    if not lists_only():
        return
    manager = run.ctx.deps.tool_manager
    known = manager.tools or {}
    unlisted = set(names) - known.keys()
    if not unlisted or manager.ctx is None:
        return
    with only(unlisted):
        tools = await manager.toolset.get_tools(manager.ctx)
    manager.tools = {**known, **{name: tools[name] for name in unlisted if name in tools}}
