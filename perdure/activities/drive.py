"""One run of a user's agent, opened where the durable run stands, to be driven node by node."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic_ai import CallToolsNode, DeferredToolResults, ModelRequestNode
from pydantic_ai.capabilities import AbstractCapability, ReinjectSystemPrompt
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    ToolCallPart,
)
from pydantic_ai.models import Model
from pydantic_ai.result import FinalResult
from pydantic_ai.run import AgentRun
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage
from pydantic_graph import End
from temporalio import activity

from perdure.activities.carry import run_usage
from perdure.activities.containment import contained
from perdure.activities.counted import usage_limits
from perdure.activities.listing import usable
from perdure.activities.runtime import Runtime
from perdure.activities.transcript import Conversation
from perdure.agent import DurableAgent
from perdure.contracts import RetryState, StepInput, ToolInput
from perdure.errors import InternalError

NO_PROVIDER_RETRIES = cast("ModelSettings", {"max_retries": 0})
"""Temporal retries a model request; a client that did so too would multiply the attempts."""


@dataclass(frozen=True)
class Place:
    """Where a durable run stands, as one activity has to know it."""

    durable: DurableAgent
    model: Model
    deps: Any
    conversation: Conversation
    step: int
    retries: RetryState
    usage: RunUsage
    run_id: str
    request_input_tokens: int | None = None


async def place(runtime: Runtime, input: StepInput | ToolInput) -> Place:
    """Gather what an activity needs. Raises `UnknownAgent`, `InvalidRequest`, what `deps` raises, and what asking the
    workflow for its transcript raises."""
    durable = runtime.app.agent(input.agent)
    conversation = await runtime.transcripts.load(input.seen)
    return Place(
        durable=durable,
        model=runtime.model(durable, input.model),
        deps=await runtime.deps(durable, conversation.start),
        conversation=conversation,
        step=input.step,
        retries=input.retries,
        usage=run_usage(input.usage),
        run_id=input.run_id,
        request_input_tokens=input.request_input_tokens if isinstance(input, StepInput) else None,
    )


@asynccontextmanager
async def opened(
    here: Place,
    capabilities: Sequence[AbstractCapability[Any]],
    messages: Sequence[ModelMessage],
    prompt: Any = None,
    *,
    decision: DeferredToolResults | None = None,
) -> AsyncGenerator[AgentRun[Any, Any]]:
    """A run of the agent, seeded with what the durable run knows: step, counts, prompt, tools shown so far."""
    agent = here.durable.agent
    if here.conversation.start.get("handoff"):
        capabilities = [*capabilities, ReinjectSystemPrompt()]
    with contained():
        async with (
            usable(agent, here.model, messages),
            agent.iter(
                prompt,
                message_history=list(messages),
                deferred_tool_results=decision,
                model=here.model,
                deps=here.deps,
                usage=here.usage,
                usage_limits=usage_limits(here.model, here.request_input_tokens),
                model_settings=NO_PROVIDER_RETRIES,
                conversation_id=activity.info().workflow_id,
                run_id=here.run_id,
                capabilities=capabilities,
                infer_name=False,
            ) as run,
        ):
            _seed(run, here, prompted=prompt is not None)
            yield run


def _seed(run: AgentRun[Any, Any], here: Place, prompted: bool) -> None:
    """What is touched here is pinned by tests/test_pydantic_ai_contract.py."""
    state, deps = run.ctx.state, run.ctx.deps
    state.run_step = here.step - 1
    state.output_retries_used = here.retries.output
    deps.tool_manager.availability_refused |= set(here.retries.refused)
    if not prompted:
        deps.prompt = here.conversation.prompt()
    if here.conversation.established is not None:
        deps.established_tool_names = set(here.conversation.established)


def only_call(response: ModelResponse, tool_call_id: str, args: Any) -> ModelResponse:
    """The response with only one of its calls, with `args` as its arguments, and with what the provider's own tools
    did: its search may have found the tool that is called."""
    call = next(part for part in response.parts if isinstance(part, ToolCallPart) and part.tool_call_id == tool_call_id)
    native = [part for part in response.parts if isinstance(part, NativeToolCallPart | NativeToolReturnPart)]
    return replace(response, parts=[*native, replace(call, args=args)])


async def at_calls(here: Place, run: AgentRun[Any, Any]) -> CallToolsNode[Any, Any]:
    """Take a run whose history ends with a response to its calls, as they are in the step that planned them."""
    node = await advance(run, run.next_node)
    if not isinstance(node, CallToolsNode):
        raise InternalError(f"expected the calls of a response, got {type(node).__name__}")
    run.ctx.state.run_step = here.step
    context = run.ctx.deps.tool_manager.ctx
    if context is not None:
        settings = run.ctx.deps.get_model_settings(context).merged or {}
        context.model_settings = cast("ModelSettings", {k: v for k, v in settings.items() if k != "max_retries"})
    return cast("CallToolsNode[Any, Any]", node)


async def advance(run: AgentRun[Any, Any], node: Any) -> Any:
    """Run one node and return the next."""
    return await run.next(node)


def ended_with(node: Any) -> FinalResult[Any] | None:
    """What a run of the agent ended with; `None` where it goes on with a request."""
    return cast("End[FinalResult[Any]]", node).data if isinstance(node, End) else None


def asked_again(node: Any) -> list[ModelRequestPart] | None:
    """The parts of the request a run goes on with; `None` where it doesn't."""
    return list(cast("ModelRequestNode[Any, Any]", node).request.parts) if isinstance(node, ModelRequestNode) else None
