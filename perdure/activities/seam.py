"""The capability that makes one run of an agent one step of a durable run.

In a model request it turns every function tool into one that needs a decision, so that Pydantic AI validates the calls
and collects them instead of running them. In a tool call it leaves the tools as they are, and takes the arguments as
they were planned: validators and hooks have had their say then, once. In both it seeds the retry counts, which are the
workflow's, and notes what it sees.
"""

from __future__ import annotations

import hashlib
import inspect
import string
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, ToolSearch, WrapToolValidateHandler
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import SchemaValidator, core_schema

from perdure.activities.breaker import Health, health_of
from perdure.activities.carry import are_numbers_kept
from perdure.activities.containment import contained
from perdure.activities.surrogates import joined
from perdure.errors import AnswerLost
from perdure.schemas import problems
from perdure.toolsets.lost import unanswered
from perdure.toolsets.target import runs_elsewhere

ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
ID_LETTERS = string.ascii_lowercase + string.digits


class Collected(Exception):
    """Stops a run of the agent where its calls are collected; carries them. Never leaves the activity."""

    def __init__(self, requests: DeferredToolRequests) -> None:
        super().__init__("the calls of this step are collected")
        self.requests = requests


class Elsewhere(Exception):
    """Stops a run of the agent before a call that no worker of the agent runs. Never leaves the activity."""


@dataclass
class Answered(AbstractCapability[Any]):
    """Innermost: takes the model's answer before any hook can change or refuse it, with unique ids for its calls."""

    used_ids: frozenset[str] = frozenset()
    id_seed: str = ""
    """What replaced call ids are derived from."""
    response: ModelResponse | None = None
    """The answer; set as soon as the model has given it."""

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Make the ids of calls unique in the conversation, and texts such as can be carried. Nothing else changes."""
        self.response = unique_ids(joined(response), self.used_ids, self.id_seed)
        return self.response


@dataclass
class Seam(AbstractCapability[Any]):
    """See the module. One for each run of the agent; what it notes is read when the run has got where it should."""

    collect: bool
    """Whether calls are collected (a model request) or run (a tool call)."""
    retries: Mapping[str, int] = field(default_factory=lambda: {})
    tools: dict[str, ToolsetTool[Any]] = field(default_factory=lambda: {})
    """The tools as the agent made them, by the name the model sees."""
    validated: dict[str, tuple[Mapping[str, Any], RunContext[Any]]] = field(default_factory=lambda: {})
    """By tool call id: the arguments as they were validated last, and the context of that."""
    asked: set[str] = field(default_factory=lambda: set())
    """Ids of calls whose own validator asked for approval."""
    response: ModelResponse | None = None
    """The answer as every hook has left it; absent where one refused it."""
    began: bool = False
    """Whether the tool itself has begun to run."""
    health: Health = "unclear"
    """What the tool's run says of it: see `breaker`."""
    request: ModelRequestContext | None = None

    def get_ordering(self) -> CapabilityOrdering:
        """Outermost: it sees tools, arguments and responses as every other capability has left them, and the search for
        hidden tools, which Pydantic AI puts outermost too, as one more tool."""
        return CapabilityOrdering(position="outermost", wraps=[ToolSearch])

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return _SeamToolset(toolset, seam=self)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Show the tools under their own kind to the other capabilities and to the model."""
        parameters = request_context.model_request_parameters
        tools = [self._own_definition(definition) for definition in parameters.function_tools]
        request_context.model_request_parameters = replace(parameters, function_tools=tools)
        self.request = request_context
        return request_context

    def _own_definition(self, definition: ToolDefinition) -> ToolDefinition:
        tool = self.tools.get(definition.name)
        return definition if tool is None else replace(definition, kind=tool.tool_def.kind)

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        self.response = response
        return response

    async def wrap_tool_validate(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: str | dict[str, Any],
        handler: WrapToolValidateHandler,
    ) -> dict[str, Any]:
        """In a tool call, read the planned arguments without asking validators and hooks a second time."""
        if self.collect:
            validated = await handler(args)
            if not are_numbers_kept(self.tools[call.tool_name], validated, ctx.validation_context):
                raise ModelRetry("The arguments are not valid: NaN and Infinity are no numbers of JSON")
            return validated
        tool = self.tools[call.tool_name]
        validated = tool.args_validator.validate_python(args, context=ctx.validation_context)
        if runs_elsewhere(tool.tool_def) and (tool.tool_def.kind != "unapproved" or ctx.tool_call_approved):
            self.validated[call.tool_call_id] = validated, ctx
            raise Elsewhere
        return validated

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        raise Collected(requests)

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        self.validated[call.tool_call_id] = args, ctx
        return args


@dataclass
class _SeamToolset(WrapperToolset[Any]):
    seam: Seam = field(kw_only=True)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        ctx.retries.update({name: count for name, count in self.seam.retries.items() if name not in ctx.retries})
        tools = await super().get_tools(ctx)
        self.seam.tools = dict(tools)
        return {name: self._seen(tool, ctx) for name, tool in tools.items()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        self.seam.began = True
        try:
            with contained():
                result = await super().call_tool(name, tool_args, ctx, tool)
        except Exception as error:
            if what := unanswered(error):
                self.seam.health = "ill"
                raise AnswerLost(f"The MCP server {what}.") from None
            self.seam.health = health_of(error)
            raise
        self.seam.health = "well"
        return result

    def _seen(self, tool: ToolsetTool[Any], ctx: RunContext[Any]) -> ToolsetTool[Any]:
        if not self.seam.collect:
            return tool
        if tool.tool_def.kind == "external":
            tool = self._checking(tool, ctx)
        if tool.args_validator_func is not None:
            tool = replace(tool, args_validator_func=self._noting(tool.args_validator_func))
        if tool.tool_def.kind != "function":
            return tool
        return replace(tool, tool_def=replace(tool.tool_def, kind="unapproved"))

    def _checking(self, tool: ToolsetTool[Any], ctx: RunContext[Any]) -> ToolsetTool[Any]:
        """A tool that is called outside, with its arguments checked by its schema, and with the agent's retries.

        Pydantic AI's `ExternalToolset` takes any arguments and has no retries: a bad call would end the run.
        """
        schema, own = tool.tool_def.parameters_json_schema, tool.args_validator_func

        async def validate(ctx: RunContext[Any], /, **args: Any) -> Any:
            if wrong := problems(schema, args):
                raise ModelRetry(f"The arguments are not valid: {wrong}")
            result = own(ctx, **args) if own else None
            return await result if inspect.isawaitable(result) else result

        retries = max(tool.max_retries, ctx.max_retries)
        return replace(tool, args_validator=ANY_OBJECT, args_validator_func=validate, max_retries=retries)

    def _noting(self, validator: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        async def validate(ctx: RunContext[Any], /, **args: Any) -> Any:
            try:
                result = validator(ctx, **args)
                return await result if inspect.isawaitable(result) else result
            except ApprovalRequired:
                self.seam.asked.add(ctx.tool_call_id or "")
                self.seam.validated[ctx.tool_call_id or ""] = args, ctx
                raise
            except CallDeferred:
                self.seam.validated[ctx.tool_call_id or ""] = args, ctx
                raise

        return validate


def unique_ids(response: ModelResponse, used: frozenset[str], seed: str) -> ModelResponse:
    """The response with every empty or already used tool call id replaced by nine letters and digits.

    Nine of `[a-z0-9]` is what the strictest provider accepts. Parts are replaced whole, so signatures stay.
    """
    seen = set(used)
    parts: list[Any] = []
    for index, part in enumerate(response.parts):
        if isinstance(part, ToolCallPart):
            if not part.tool_call_id or part.tool_call_id in seen:
                part = replace(part, tool_call_id=_fresh_id(f"{seed}.{index}", seen))
            seen.add(part.tool_call_id)
        parts.append(part)
    unchanged = all(new is old for new, old in zip(parts, response.parts, strict=True))
    return response if unchanged else replace(response, parts=parts)


def _fresh_id(seed: str, seen: set[str]) -> str:
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest(), "big")
    while True:
        number, letters = number + 1, ""
        rest = number
        for _ in range(9):
            rest, digit = divmod(rest, len(ID_LETTERS))
            letters += ID_LETTERS[digit]
        if letters not in seen:
            return letters
