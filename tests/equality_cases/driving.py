"""A plain `Agent.iter`, driven node by node as the activities do it, for the contract tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic_ai import Agent, AgentRun, CallToolsNode, DeferredToolRequests, ModelRetry, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from tests.scripts import Script, Turn

Run = AgentRun[Any, Any]


def picky(ctx: RunContext[Any], n: int) -> str:
    """Refuses what is below 2."""
    if n < 2:
        raise ModelRetry(f"retry {ctx.retry}, step {ctx.run_step}, prompt {ctx.prompt}")
    return f"fine, retry {ctx.retry}, step {ctx.run_step}, prompt {ctx.prompt}"


@asynccontextmanager
async def opened(
    *turns: Turn, prompt: Any = "go", history: Sequence[ModelMessage] = (), capabilities: Any = (), **options: Any
) -> AsyncGenerator[Run]:
    """A run of an agent with the tool `picky`, that may end with collected calls."""
    agent = Agent(Script(*turns).model, name="agent", tools=[Tool(picky, max_retries=5)], **options)
    output_type: Any = [agent.output_type, DeferredToolRequests]
    run = agent.iter(prompt, message_history=list(history), output_type=output_type, capabilities=capabilities)
    async with run as opened:
        yield opened


async def advance(run: Run, node: Any) -> Any:
    return await run.next(node)


async def to_calls(run: Run) -> CallToolsNode[Any, Any]:
    """Drive a run up to the node that handles the response."""
    node = await advance(run, run.next_node)
    while not isinstance(node, CallToolsNode):
        node = await advance(run, node)
    return cast("CallToolsNode[Any, Any]", node)


def called(n: int) -> list[ModelMessage]:
    """A history that ends in a call of `picky`."""
    call = ToolCallPart("picky", {"n": n}, tool_call_id="c1")
    return [ModelRequest(parts=[UserPromptPart("go")]), ModelResponse(parts=[call])]


@dataclass
class Answer:
    n: int


@dataclass
class Collecting(AbstractCapability[Any]):
    """What `Seam` does: sees tools last, collects calls, seeds counts."""

    seen: list[Any] = field(default_factory=list[Any])

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return _Unapproved(toolset)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        self.seen.append([tool.kind for tool in request_context.model_request_parameters.function_tools])
        return request_context

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any
    ) -> Any:
        self.seen.append((call.tool_call_id, args, ctx.retry))
        return args


@dataclass
class _Unapproved(WrapperToolset[Any]):
    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        ctx.retries.update({"picky": 2})
        tools = await super().get_tools(ctx)
        return {name: replace(tool, tool_def=replace(tool.tool_def, kind="unapproved")) for name, tool in tools.items()}
