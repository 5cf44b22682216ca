"""`OpenAIAgentsToolset`: function tools of the OpenAI Agents SDK, run as they are. Needs the extra `openai-agents`."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from inspect import isawaitable
from typing import Any, cast

from pydantic_ai import ApprovalRequired, FunctionToolset, RunContext, Tool
from pydantic_ai.tools import ToolDefinition

from perdure.contracts import Json
from perdure.errors import DeclarationError
from perdure.names import check_tool_name
from perdure.schemas import check_schema
from perdure.toolsets.foreign import each_of, foreign, no_sdk, retry_unless_valid, several, version_of
from perdure.toolsets.misplaced import NoFunction

try:
    from agents import FunctionTool
except ImportError as error:
    raise ImportError(no_sdk("perdure.toolsets.openai_agents")) from error
try:
    from perdure.toolsets.openai_agents_call import Invocation, agent_of, must_be_approved, namespace_of, wrapper_of
    from perdure.toolsets.openai_agents_refused import refuse
except ImportError as error:
    raise ImportError(
        f"perdure.toolsets.openai_agents can't use the OpenAI Agents SDK of version {version_of('openai-agents')}, "
        f"which lacks something it needs ({error}): install a version that perdure names in its extra openai-agents"
    ) from error

OWN_MARGIN = 5.0
"""Seconds by which Pydantic AI's clock is longer than the tool's own `timeout_seconds`, which answers first."""


class OpenAIAgentsToolset(NoFunction, FunctionToolset[Any]):
    """Function tools of the OpenAI Agents SDK: `FunctionTool`s, functions with `@function_tool`, `*tool_namespace(…)`.

    Each option keeps its meaning: strict schemas, `needs_approval`, `is_enabled`, `timeout`, `failure_error_function`,
    guardrails, `defer_loading`. A namespaced tool is called `<namespace>_<name>`. Their context is the agent's deps.

    Raises:
        DeclarationError: for tools that OpenAI runs, naming their twin in Pydantic AI, for options without one, and for
            names that a provider refuses.
    """

    def __init__(self, tools: Iterable[FunctionTool], *, id: str) -> None:
        given = several(tools, FunctionTool, id)
        for tool in given:
            refuse(tool, id)
        super().__init__(
            [_adapted(tool, id) for tool in each_of(given, FunctionTool, id, "@agents.function_tool")], id=id
        )


def _adapted(tool: FunctionTool, id: str) -> Tool[Any]:
    where = f"toolset {id!r}: tool {tool.qualified_name!r}"
    check_tool_name(_shown_name(tool), f"toolset {id!r}")
    _check_arguments(tool.params_json_schema, where)
    schema = copy.deepcopy(tool.params_json_schema)
    invocation = Invocation(tool)

    async def check(ctx: RunContext[Any], /, **args: Any) -> None:
        retry_unless_valid(schema, args)
        if callable(tool.needs_approval) and await must_be_approved(tool, ctx, args):
            raise ApprovalRequired

    async def call(ctx: RunContext[Any], /, **args: Any) -> Any:
        if not ctx.tool_call_approved and await must_be_approved(tool, ctx, args):
            raise ApprovalRequired  # what it depends on has changed since the call was planned
        return await invocation.run(ctx, args)

    adapted = foreign(_shown_name(tool), tool.description, schema, call, check, where)
    adapted.strict = tool.strict_json_schema
    adapted.requires_approval = tool.needs_approval is True
    adapted.timeout = None if tool.timeout_seconds is None else tool.timeout_seconds + OWN_MARGIN
    adapted.defer_loading = tool.defer_loading
    adapted.metadata = _metadata(tool)
    adapted.prepare = _enabled(tool)
    if tool.output_json_schema is not None:
        adapted.function_schema = replace(adapted.function_schema, return_schema=tool.output_json_schema)
    return adapted


def _check_arguments(schema: Any, where: str) -> None:
    """Raise `DeclarationError` unless it is a JSON Schema that an object of arguments can be valid by."""
    if not isinstance(schema, dict) or cast("Json", schema).get("type", "object") != "object":
        raise DeclarationError(
            f"{where}: params_json_schema={schema!r} must be the JSON Schema of an object: "
            '{"type": "object", "properties": …}'
        )
    check_schema(cast("Json", schema), where)


def _shown_name(tool: FunctionTool) -> str:
    """The name the model sees: providers take no dots."""
    return "_".join(filter(None, (namespace_of(tool), tool.name)))


def _metadata(tool: FunctionTool) -> dict[str, Any] | None:
    if not namespace_of(tool):
        return None
    return {
        "namespace": namespace_of(tool),
        "namespace_description": tool._tool_namespace_description,  # pyright: ignore[reportPrivateUsage]
    }


def _enabled(tool: FunctionTool) -> Any:
    """Leaves the tool out of a step in which it isn't enabled."""

    async def prepare(ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
        enabled: Any = tool.is_enabled
        if callable(enabled):
            enabled = enabled(wrapper_of(ctx), agent_of(ctx))
            enabled = await enabled if isawaitable(enabled) else enabled
        return definition if enabled else None

    return prepare
