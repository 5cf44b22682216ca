"""Capabilities: hooks of the request and of tools, history processors, prepared tools."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import FunctionToolset, ModelRetry, RunContext
from pydantic_ai.capabilities import (
    AbstractCapability,
    Capability,
    Hooks,
    PrefixTools,
    PrepareTools,
    SetToolMetadata,
)
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import ToolDefinition

from tests.equality_cases.base import Case, case, simple
from tests.scripts import Turn


def double(n: int) -> int:
    """Twice n."""
    return 2 * n


@dataclass
class Noting(AbstractCapability[Any]):
    """Notes and changes what passes."""

    saw: list[Any] = field(default_factory=list[Any])

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        parameters = request_context.model_request_parameters
        kinds = [(tool.name, tool.kind) for tool in parameters.function_tools]
        self.saw.append(("before", ctx.run_step, len(request_context.messages), kinds))
        request_context.model_settings = {**(request_context.model_settings or {}), "temperature": 0.5}
        return request_context

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        self.saw.append(("after", ctx.run_step, [type(part).__name__ for part in response.parts]))
        parts = [TextPart(part.content.upper()) if isinstance(part, TextPart) else part for part in response.parts]
        return replace(response, parts=parts)

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: Any
    ) -> ModelResponse:
        response: ModelResponse = await handler(request_context)
        self.saw.append(("wrapped", ctx.run_step))
        return response


@case
def hooks_of_the_request() -> Case:
    saw: list[Any] = []
    return simple({"double": {"n": 1}}, "done", saw=saw, tools=[double], capabilities=[Noting(saw)])


@dataclass
class Tools(AbstractCapability[Any]):
    """Changes arguments before validation, after it, and results."""

    saw: list[Any] = field(default_factory=list[Any])

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any
    ) -> Any:
        self.saw.append(("before", tool_def.kind, ctx.tool_call_id, ctx.retry, args))
        return {**args, "n": args["n"] + 1}

    async def after_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, result: Any
    ) -> Any:
        self.saw.append(("after", args, result))
        if result == 4:
            raise ModelRetry("not four")
        return result * 10

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        result = await handler(args)
        self.saw.append(("wrapped", args, result))
        return result

    async def on_tool_execute_error(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, error: Exception
    ) -> Any:
        self.saw.append(("error", type(error).__name__))
        return 7


@case
def hooks_of_tool_execution() -> Case:
    def fragile(n: int) -> int:
        if n > 2:
            raise ValueError("too big")
        return 2 * n

    saw: list[Any] = []
    turns = [{"fragile": {"n": 0}}, {"fragile": {"n": 1}}, {"fragile": {"n": 5}}]
    return simple(*turns, "done", saw=saw, tools=[fragile], capabilities=[Tools(saw)])


@dataclass
class Validation(AbstractCapability[Any]):
    """Changes arguments before they are validated and after, the same way each time it is asked."""

    async def before_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any
    ) -> Any:
        return {"n": "3"} if args == {"n": "three"} else args

    async def wrap_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        if args == {"n": -1}:
            raise ModelRetry("not negative")
        return await handler(args)

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any
    ) -> Any:
        return {**args, "n": min(args["n"], 100)}


@case
def hooks_of_tool_validation() -> Case:
    turns = [{"double": {"n": "three"}}, {"double": {"n": -1}}, {"double": {"n": 500}}]
    return simple(*turns, "done", tools=[double], capabilities=[Validation()])


@case
def hooks_that_are_not_idempotent_run_once_per_call() -> Case:
    @dataclass
    class Increment(AbstractCapability[Any]):
        async def after_tool_validate(
            self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any
        ) -> Any:
            return {**args, "n": args["n"] + 1}

    return simple({"double": {"n": 1}}, "done", tools=[double], capabilities=[Increment()])


@case
def hooks_registered_by_decorator() -> Case:
    saw: list[Any] = []
    hooks = Hooks[Any]()

    @hooks.on.before_model_request
    async def before(ctx: RunContext[Any], request_context: ModelRequestContext) -> ModelRequestContext:
        saw.append(("before", ctx.run_step))
        return request_context

    @hooks.on.after_tool_execute(tools=["double"])
    async def after(
        ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, result: Any
    ) -> Any:
        saw.append(("after", call.tool_name, result))
        return result + 1

    return simple({"double": {"n": 1}}, "done", saw=saw, tools=[double], capabilities=[hooks])


@case
def hooks_prepare_tools() -> Case:
    async def prepare(ctx: RunContext[Any], definitions: list[ToolDefinition]) -> list[ToolDefinition]:
        assert all(definition.kind == "function" for definition in definitions), definitions
        return [
            replace(definition, description="prepared") for definition in definitions if definition.name != "hidden"
        ]

    def hidden() -> str:
        return "hidden"

    turns: list[Turn] = [{"double": {"n": 1}}, {"hidden": {}}]
    return simple(*turns, "done", tools=[double, hidden], capabilities=[PrepareTools(prepare)])


@case
def hooks_prefix_and_metadata() -> Case:
    tools = FunctionToolset[Any]([double], id="tools")
    capability = PrefixTools(wrapped=Capability(toolsets=[tools]), prefix="p")
    return simple({"p_double": {"n": 1}}, "done", capabilities=[capability, SetToolMetadata(team="x")])


@case
def hooks_capability_instructions_and_toolset() -> Case:
    capability = Capability[Any](instructions="Use it.", toolsets=[FunctionToolset[Any]([double], id="tools")])
    return simple({"double": {"n": 1}}, "done", instructions="Mine.", capabilities=[capability])


@case
def hooks_refuse_a_response() -> Case:
    hooks = Hooks[Any]()

    @hooks.on.after_model_request
    async def after(
        ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        if response.text == "bad":
            raise ModelRetry("better")
        return response

    return simple("bad", "good", capabilities=[hooks])


@case
def hooks_of_output() -> Case:
    saw: list[Any] = []
    hooks = Hooks[Any]()

    @hooks.on.after_output_validate
    async def after(ctx: RunContext[Any], *, output_context: Any, output: Any) -> Any:
        saw.append(("output", output, ctx.retry))
        if output == {"response": [1]}:
            raise ModelRetry("more")
        return output

    turns = [{"final_result": {"response": [1]}}, {"final_result": {"response": [1, 2]}}]
    return simple(*turns, saw=saw, output_type=list[int], capabilities=[hooks])
