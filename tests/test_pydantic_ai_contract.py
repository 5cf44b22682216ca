"""What perdure reaches for in Pydantic AI beyond its documented API: an upgrade that changes it breaks here first.

Each test drives a plain `Agent.iter`, without Temporal, the way the activities do.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, cast

import pytest
from pydantic_ai import Agent, CallToolsNode, DeferredToolRequests, ModelRequestNode, RunContext
from pydantic_ai.capabilities import AbstractCapability, Hooks
from pydantic_ai.exceptions import IncompleteToolCall, UnexpectedModelBehavior
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_graph import End

from perdure.capabilities import NOT_BUILT, ONCE_PER_RUN
from tests.equality_cases.driving import Answer, Collecting, advance, called, opened, picky, to_calls
from tests.scripts import Script


async def test_run_step_and_output_retries_are_seeded_by_the_state() -> None:
    """`state.run_step` and `.output_retries_used` may be set before the first node; `run_step` counts requests."""
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
        answer = cast("Any", after).request.parts[0]
        assert answer.content == "fine, retry 0, step 4, prompt the prompt"


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
    """`tool_manager.failed_tools` names tools that were charged a retry, and `RetryInfo.attempt` is set for them."""
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


async def test_tools_may_be_listed_again_in_a_step() -> None:
    """Calls are looked up in `tool_manager.tools`, which `toolset.get_tools` makes with the manager's context."""
    async with opened("done") as run:
        await to_calls(run)
        manager: Any = run.ctx.deps.tool_manager
        assert (await manager.toolset.get_tools(manager.ctx)).keys() == manager.tools.keys()


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
    """`tool_manager.tools` holds every tool with its definition, output tools by kind; `deps.end_strategy` is known."""
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
    agent = Agent(Script({"picky": {"n": 3}}).model, tools=[picky])
    agent.output_validator(lambda output: output)
    async with agent.iter("go", capabilities=[Collecting()]) as run:
        schema = run.ctx.deps.output_schema = copy.copy(run.ctx.deps.output_schema)
        schema.allows_deferred_tools = True
        end: Any = await advance(run, await to_calls(run))
        assert isinstance(end.data.output, DeferredToolRequests)


async def test_dynamic_system_prompts_can_be_left_as_they_were_made() -> None:
    """The first node holds `system_prompt_dynamic_functions`; emptied, prompts of the history aren't made anew."""
    agent = Agent(Script("done").model)
    made: list[int] = []
    agent.system_prompt(dynamic=True)(lambda: f"prompt {made.append(1)}")
    async with agent.iter("go") as run:
        first: Any = run.next_node
        assert first.system_prompt_dynamic_functions
        history = [*(await to_calls_and_history(run))]
    async with agent.iter(message_history=history) as run:
        cast("Any", run.next_node).system_prompt_dynamic_functions = {}
        await advance(run, run.next_node)
    assert made == [1]


async def to_calls_and_history(run: Any) -> Any:
    await to_calls(run)
    return [
        run.ctx.state.message_history[0],
        ModelResponse(parts=[TextPart("x")]),
        ModelRequest(parts=[UserPromptPart("y")]),
    ]


async def test_a_cut_off_call_is_told_by_the_state() -> None:
    """`state.check_incomplete_tool_call()` raises where the history ends in a response cut off inside a call."""
    cut = ModelResponse(parts=[ToolCallPart("picky", '{"n": ', tool_call_id="c")], finish_reason="length")
    async with opened(cut) as run:
        await to_calls(run)
        with pytest.raises(IncompleteToolCall):
            run.ctx.state.check_incomplete_tool_call()
        assert issubclass(IncompleteToolCall, UnexpectedModelBehavior)


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
