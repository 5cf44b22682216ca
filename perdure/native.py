"""Tools that the model's provider runs, and search for hidden tools by it: whether a model has them.

Pydantic AI refuses a request with a native tool that its model lacks and that no local tool replaces. The same question
is asked here without a request: when the `App` is built for models that are there, else when a run begins.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability, NativeOrLocalTool, WrapperCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.native_tools import AbstractNativeTool
from pydantic_ai.tools import ToolDefinition

from perdure.capabilities import all_of, on_demand
from perdure.listing import listed


def native_problem(agent: AbstractAgent[Any, Any], model: Model) -> str | None:
    """Why a request of the agent would be refused by the model, in Pydantic AI's words; `None` where nothing is wrong
    or where only a request can tell: native tools made by functions, models that fall back on others, toolsets whose
    tools may take the place of a native one."""
    tools, replaced = _declared(agent)
    own = [listed(toolset) for toolset in agent.toolsets if not _replaces(getattr(toolset, "capability", None))]
    if not tools or None in own:
        return None
    late = on_demand(agent)
    shown = [tool for part in own for tool in part or [] if tool.capability_id not in late]
    replaced |= {tool.unless_native for tool in shown if tool.unless_native}
    local = [ToolDefinition(name=f"local_{number}", unless_native=id) for number, id in enumerate(sorted(replaced))]
    try:
        model.prepare_request(None, ModelRequestParameters(native_tools=tools, function_tools=local))
    except UserError as error:
        return str(error)
    return None


def _declared(agent: AbstractAgent[Any, Any]) -> tuple[list[AbstractNativeTool], set[str]]:
    """The agent's native tools, and the ids of those that a local tool may take the place of."""
    tools: list[AbstractNativeTool] = []
    replaced: set[str] = set()
    for capability in all_of(agent):
        own = [tool for tool in capability.get_native_tools() if isinstance(tool, AbstractNativeTool)]
        while isinstance(capability, WrapperCapability):
            capability = capability.wrapped
        if _replaces(capability) and capability.get_toolset() is not None:
            replaced |= {tool.unique_id for tool in own}
        if capability.defer_loading is not True:
            tools += own
    return [tool for tool in tools if not tool.optional], replaced


def _replaces(capability: AbstractCapability[Any] | None) -> bool:
    return isinstance(capability, NativeOrLocalTool)
