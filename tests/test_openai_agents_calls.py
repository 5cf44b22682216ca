"""Time and faults of the OpenAI Agents SDK's function tools, by the real library."""

from __future__ import annotations

from typing import Any

import pytest
from agents import (
    FunctionTool,
    RunContextWrapper,
    function_tool,
)
from agents.tool_context import ToolContext
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import ToolPolicy
from tests.deciding import answers
from tests.foreign import ANN, RAN, told
from tests.harness import activities, failure_of, working
from tests.reading import everything
from tests.scripts import Script
from tests.sdk_tools import an_app, failing, gated, slow

pytestmark = pytest.mark.usefixtures("nothing_ran")


def late(ctx: RunContextWrapper[Any], error: Exception) -> str:
    """The words of a tool."""
    return f"{type(error).__name__}: ask {ctx.context['user']}"


async def test_s2_21_a_timeout_is_told_to_the_model(client: Client, cache: int) -> None:
    tools = [slow("slow"), slow("words", timeout_error_function=late)]
    script = Script([ToolCallPart("slow", {}), ToolCallPart("words", {})], "done")
    policy = ToolPolicy(effect="safe")
    found, handle = await told(client, an_app(script, *tools, slow=policy), cache)
    assert found == [
        ("failed", "Tool 'slow' timed out after 0.05 seconds."),
        ("failed", "ToolTimeoutError: ask ann"),
    ]
    assert sorted(RAN) == ["slow", "words"]
    assert (await activities(handle)).count("tool:slow") == 1


async def test_s2_21_a_timeout_that_raises_fails_the_run(client: Client, cache: int) -> None:
    """S2-24 too: the result of a call beside it is kept."""
    script = Script([ToolCallPart("slow", {}), ToolCallPart("pay", {"cents": 1})], "done")
    app = an_app(script, slow("slow", timeout_behavior="raise_exception"), gated("pay", False))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        failure = await failure_of(handle)
        assert (failure.type, failure.message) == ("ToolTimeout", "Tool 'slow' timed out after 0.05 seconds.")
        assert failure.non_retryable
        assert (await answers(handle))["c0.1"] == ("success", "refunded 1")
    assert sorted(map(str, RAN)) == ["('pay', 1)", "slow"]


async def test_s2_25_faults_are_told_in_the_words_of_the_tool(client: Client, cache: int) -> None:
    """Repeated first, where the policy says that the tool may be."""
    tools = [
        failing("plain"),
        failing("words", failure_error_function=late),
        failing("none", failure_error_function=None),
    ]
    script = Script([ToolCallPart(one.name, {"key": "a"}) for one in tools], "done")
    policy = ToolPolicy(effect="idempotent", attempts=2, backoff=0.01)
    found, handle = await told(client, an_app(script, *tools, plain=policy, none=policy), cache)
    assert found == [
        ("failed", "An error occurred while running the tool. Please try again."),
        ("failed", "ValueError: ask ann"),
        ("failed", "The tool failed with ValueError."),
    ]
    assert sorted(RAN) == ["none", "none", "plain", "plain", "words"]
    assert "hunter2" not in await everything(handle)


async def test_what_is_not_enabled_is_not_shown(client: Client, cache: int) -> None:
    def for_ann(ctx: RunContextWrapper[Any], agent: Any) -> bool:
        return ctx.context["user"] == "ann" and agent.name == "clerk"

    async def for_bob(ctx: RunContextWrapper[Any], agent: Any) -> bool:
        return ctx.context["user"] == "bob"

    tools = [
        gated("a", False, is_enabled=for_ann),
        gated("b", False, is_enabled=for_bob),
        gated("c", False, is_enabled=False),
    ]
    script = Script({"b": {"cents": 1}}, {"a": {"cents": 1}}, "done")
    found, _ = await told(client, an_app(script, *tools), cache)
    assert [one.name for one in script.infos[0].function_tools] == ["a"]
    assert found[0][0] == "retried"
    assert found[1] == ("success", "refunded 1")


def text_of(ctx: RunContextWrapper[Any], error: Exception) -> str:
    """The text of an exception, where a tool wants to show it."""
    return str(error)


async def test_what_a_tool_cannot_be_given_says_so(client: Client) -> None:
    async def invoke(ctx: RunContextWrapper[Any], args: str) -> str:
        return f"{ctx.context['user']} {args} {type(ctx).__name__}"

    @function_tool(failure_error_function=text_of)
    def peeks(ctx: ToolContext[Any], at: str) -> str:
        """Looks at the turn."""
        if at == "turn":
            return str(len(ctx.turn_input))
        ctx.approve_tool(None)  # pyright: ignore[reportArgumentType]
        raise AssertionError

    schema: dict[str, Any] = {"type": "object", "properties": {}}
    handmade = FunctionTool("handmade", "d", schema, invoke)  # pyright: ignore[reportArgumentType]
    script = Script({"peeks": {"at": "turn"}}, {"peeks": {"at": "approve"}}, {"handmade": {}}, "done")
    found, _ = await told(client, an_app(script, peeks, handmade))
    assert found == [
        ("failed", "turn_input isn't known in a durable run: it holds items of the SDK's own runs"),
        ("failed", "a call is approved by the update `approve` of its run, not in a tool"),
        ("success", "ann {} RunContextWrapper"),
    ]
