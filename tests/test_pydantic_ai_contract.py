"""What perdure reaches for in Pydantic AI beyond its documented API: an upgrade that changes it breaks here first.

Each test drives a plain `Agent.iter`, without Temporal, the way the activities do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from pydantic_ai import (
    Agent,
    AgentRun,
    CallToolsNode,
    DeferredToolRequests,
    ModelRequestNode,
    ModelRetry,
    RunContext,
    Tool,
)
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, Hooks
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_ai.usage import RequestUsage, RunUsage
from pydantic_graph import End

from perdure.capabilities import NOT_BUILT, ONCE_PER_RUN
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


async def test_run_step_and_output_retries_are_seeded_by_the_state() -> None:
    """`run.ctx.state.run_step` and `.output_retries_used` may be set before the first node; `run_step` counts requests."""
    async with opened({"picky": {"n": 3}}) as run:
        run.ctx.state.run_step = 6
        run.ctx.state.output_retries_used = 0
        node = await to_calls(run)
        assert run.ctx.state.run_step == 7
        after = await advance(run, node)
        assert after.request.parts[0].content == "fine, retry 0, step 7, prompt go"


async def test_a_history_that_ends_in_a_call_runs_it_without_a_request() -> None:
    """With such a history the first node is followed by `CallToolsNode`, and that by the request with the answer.

    No request was made, so `run_step` wasn't counted up: the step of the call has to be set after the first node.
    """
    async with opened(prompt=None, history=called(3)) as run:
        node = await advance(run, run.next_node)
        assert isinstance(node, CallToolsNode)
        assert run.ctx.state.run_step == 0
        run.ctx.state.run_step = 4
        run.ctx.deps.prompt = "the prompt"
        after: Any = await advance(run, cast("CallToolsNode[Any, Any]", node))
        assert isinstance(after, ModelRequestNode)
        assert after.request.parts[0].content == "fine, retry 0, step 4, prompt the prompt"


async def test_the_prompt_of_a_run_without_one_can_be_set() -> None:
    """`run.ctx.deps.prompt` is what `RunContext.prompt` gives, and is `None` where a call is run from a history."""
    async with opened(prompt=None, history=called(3)) as run:
        assert run.ctx.deps.prompt is None


async def test_a_pending_request_is_the_first_one_made() -> None:
    """A history that ends in a request, without a prompt, sends that request."""
    history = [*called(3), ModelRequest(parts=[UserPromptPart("pending")])]
    async with opened(
        "one", "done", prompt=None, history=[history[0], ModelResponse(parts=[TextPart("x")]), history[2]]
    ) as run:
        await to_calls(run)
        assert [message.kind for message in run.ctx.state.message_history] == [
            "request",
            "response",
            "request",
            "response",
        ]


async def test_failed_tools_and_retry_counts() -> None:
    """`tool_manager.failed_tools` names the tools that were charged a retry, and `RetryInfo.attempt` is set for them."""
    async with opened({"picky": {"n": 0}}) as run:
        node = await to_calls(run)
        after = await advance(run, node)
        assert run.ctx.deps.tool_manager.failed_tools == {"picky"}
        retry = after.request.parts[0].retry
        assert (retry.attempt, retry.max_retries, retry.cause) == (1, 5, "model_retry")


async def test_an_unknown_tool_is_told_by_its_cause() -> None:
    """`RetryInfo.cause` is `unknown_tool`: what perdure knows a vanished tool by."""
    async with opened({"nothing": {}}) as run:
        after = await advance(run, await to_calls(run))
        assert after.request.parts[0].retry.cause == "unknown_tool"


async def test_refusals_of_hidden_tools_are_a_set_that_can_be_seeded() -> None:
    """`tool_manager.availability_refused` is a set of names, updated in place."""
    async with opened("done") as run:
        refused: Any = run.ctx.deps.tool_manager.availability_refused
        assert isinstance(refused, set)
        run.ctx.deps.tool_manager.availability_refused |= {"picky"}
        await to_calls(run)
        assert run.ctx.deps.tool_manager.availability_refused == {"picky"}


async def test_output_retries_can_be_lent_and_taken_back() -> None:
    """`deps.max_output_retries` and `state.output_retries_used` are plain numbers that may be set between nodes."""
    async with opened("no number", output_type=Answer) as run:
        node = await to_calls(run)
        run.ctx.deps.max_output_retries = 9
        run.ctx.state.output_retries_used = 8
        await advance(run, node)
        assert run.ctx.state.output_retries_used == 9


async def test_the_response_of_the_calls_node_can_be_replaced() -> None:
    """`CallToolsNode.model_response` may be replaced before the node runs; the history keeps the whole response."""
    async with opened({"picky": {"n": 3}, "final_result": {"n": 1}}, output_type=Answer) as run:
        node = await to_calls(run)
        kept = [
            part for part in node.model_response.parts if isinstance(part, ToolCallPart) and part.tool_name == "picky"
        ]
        node.model_response = replace(node.model_response, parts=kept)
        after = await advance(run, node)
        assert [part.tool_name for part in after.request.parts] == ["picky"]
        assert len(run.ctx.state.message_history[1].parts) == 2


async def test_the_end_holds_the_output_and_the_history_its_answers() -> None:
    """`End.data.output` is the output; the last request of `state.message_history` answers the output call."""
    async with opened({"final_result": {"n": 1}}, output_type=Answer) as run:
        end: Any = await advance(run, await to_calls(run))
        assert isinstance(end, End)
        assert cast("Any", end).data.output == Answer(1)
        last = run.ctx.state.message_history[-1]
        assert isinstance(last, ModelRequest)
        assert cast("Any", last.parts[0]).content == "Final result processed."


async def test_names_and_kinds_of_output_tools_and_the_end_strategy() -> None:
    """`tool_manager.tools` holds every tool with its definition, output tools by kind; `deps.end_strategy` the strategy."""
    async with opened({"picky": {"n": 3}}, output_type=Answer, end_strategy="early") as run:
        await to_calls(run)
        tools = run.ctx.deps.tool_manager.tools or {}
        assert {name: tool.tool_def.kind for name, tool in tools.items()} == {
            "picky": "function",
            "final_result": "output",
        }
        assert run.ctx.deps.end_strategy == "early"


async def test_the_output_schema_decides_whether_calls_may_be_collected() -> None:
    """A copy of `deps.output_schema` with `allows_deferred_tools` ends a run with collected calls.

    An agent with output validators refuses another `output_type` for a run, so this is how calls are collected there.
    """
    assert hasattr(type(await schema_of("done")), "allows_deferred_tools")


async def schema_of(*turns: Turn) -> Any:
    async with opened(*turns) as run:
        return run.ctx.deps.output_schema


async def test_tools_established_by_the_first_request_are_noted() -> None:
    """`deps.established_tool_names` is `None` before a run's first request and then holds the tools it declared.

    Tools that come later are announced to the model against this set.
    """
    async with opened("done") as run:
        assert run.ctx.deps.established_tool_names is None
        await to_calls(run)
        assert run.ctx.deps.established_tool_names == {"picky"}


async def test_enqueued_messages_are_seen() -> None:
    """`AgentRun.pending_messages` is what a tool enqueued, empty where nothing was."""
    async with opened("done") as run:
        assert not run.pending_messages


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


async def test_calls_of_kind_unapproved_are_validated_and_collected() -> None:
    """A wrapper toolset may change the kind of a tool and seed `ctx.retries`; its calls end the run uncalled."""
    capability = Collecting()
    async with opened({"picky": {"n": "3"}}, capabilities=[capability]) as run:
        end: Any = await advance(run, await to_calls(run))
        assert isinstance(end, End)
        output = cast("Any", end).data.output
        assert isinstance(output, DeferredToolRequests)
        assert [call.tool_name for call in output.approvals] == ["picky"]
    assert capability.seen == [["unapproved"], ("c0.0", {"n": 3}, 2)]


def test_hooks_that_are_refused_exist() -> None:
    """Every hook perdure refuses is a method of `AbstractCapability`, so that an override can be told."""
    assert [name for name in (*ONCE_PER_RUN, *NOT_BUILT) if not hasattr(AbstractCapability, name)] == []


def test_registered_hooks_are_told_by_the_registry() -> None:
    """`Hooks._registry` maps the name of a hook to what was registered."""
    hooks = Hooks[Any]()
    assert not any(cast("dict[str, Any]", getattr(hooks, "_registry")).values())  # noqa: B009

    @hooks.on.before_run
    async def before(ctx: RunContext[Any]) -> None: ...

    assert [name for name, entries in getattr(hooks, "_registry").items() if entries] == ["before_run"]  # noqa: B009


@pytest.mark.parametrize("module", ["_pending_messages", "_tool_search"])
def test_capabilities_every_agent_has_are_in_the_modules_that_are_let_through(module: str) -> None:
    """Pydantic AI gives agents capabilities of its own, known by their module."""
    found: list[str] = []
    Agent(Script().model, name="agent").root_capability.apply(
        lambda capability: found.append(type(capability).__module__)
    )
    known = ("pydantic_ai.capabilities._pending", "pydantic_ai.capabilities._tool_search")
    assert all(name.startswith(known) for name in found), found
    __import__(f"pydantic_ai.capabilities.{module}")


def test_counters_of_usage() -> None:
    """Every counter of a run's usage can be set; those of a request are among them."""
    usage = RunUsage(
        requests=1, tool_calls=2, input_tokens=3, output_tokens=4, cache_read_tokens=5, cache_write_tokens=6
    )
    usage.cost = None
    usage.details["x"] = 1
    assert RunUsage().cost is None
    assert RequestUsage().cost is None


def test_models_that_stream_or_count_override_the_method() -> None:
    """`Model.request_stream` and `Model.count_tokens` are methods that a model overrides to be able to."""
    assert callable(Model.request_stream)
    assert callable(Model.count_tokens)
