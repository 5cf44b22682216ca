"""Time, faults and approvals of the OpenAI Agents SDK's function tools, by the real library."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import (
    FunctionTool,
    RunContextWrapper,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
    ToolOutputGuardrail,
    ToolOutputGuardrailData,
    function_tool,
)
from agents.tool_context import ToolContext
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import App, ToolPolicy
from perdure.toolsets.openai_agents import OpenAIAgentsToolset
from tests.foreign import ANN, RAN, clerk, told
from tests.harness import activities, failure_of, working
from tests.scripts import Script
from tests.test_approvals import answers, pending, update


@pytest.fixture(autouse=True)
def ran() -> None:
    """Begins with nothing done."""
    RAN.clear()


def an_app(script: Script, *tools: FunctionTool, **policies: ToolPolicy) -> App:
    """One agent with these tools."""
    return clerk(script, OpenAIAgentsToolset(tools, id="sdk"), **policies)


def slow(name: str, **options: Any) -> FunctionTool:
    """A tool that doesn't end by itself."""

    async def run() -> str:
        """Waits until it is cancelled."""
        RAN.append(name)
        await asyncio.Event().wait()
        raise AssertionError

    return function_tool(run, name_override=name, timeout=0.05, **options)


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


def failing(name: str, **options: Any) -> FunctionTool:
    """A tool that raises."""

    def run(key: str) -> str:
        """Fails."""
        RAN.append(name)
        raise ValueError("password hunter2")

    return function_tool(run, name_override=name, **options)


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
    assert "hunter2" not in (await handle.fetch_history()).to_json()


async def large(ctx: RunContextWrapper[Any], args: dict[str, Any], call_id: str) -> bool:
    """Whether a refund needs somebody."""
    RAN.append(("asked", args, call_id, ctx.context["user"]))
    if args["cents"] == 13:
        raise ValueError("no luck")
    return args["cents"] > 100


def gated(name: str, needs: Any, **options: Any) -> FunctionTool:
    """A tool that needs an approval."""

    def run(cents: int) -> str:
        """Refunds."""
        RAN.append((name, cents))
        return f"refunded {cents}"

    return function_tool(run, name_override=name, needs_approval=needs, **options)


async def test_needs_approval_gates_the_call(client: Client, cache: int) -> None:
    calls = [("always", 1), ("large", 101), ("large", 100), ("large", 13)]
    script = Script([ToolCallPart(name, {"cents": cents}) for name, cents in calls], "done")
    app = an_app(script, gated("always", True), gated("large", large))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        rows = await pending(handle, 3)
        assert [row["args"]["cents"] for row in rows] == [1, 101, 13]
        for row, verb in zip(rows, ("approve", "deny", "approve"), strict=True):
            await update(handle, verb, {"call": row["call"], "by": "bob"})
        await handle.result()
        outcomes = [outcome for outcome, _ in (await answers(handle)).values()]
    assert outcomes == ["success", "denied", "success", "success"]
    assert sorted(row for row in RAN if row[0] != "asked") == [("always", 1), ("large", 13), ("large", 100)]
    assert ("asked", {"cents": 101}, "c0.1", "ann") in RAN


OPEN = ["yes"]
"""What the guardrail looks at, which may change while a call waits."""


def looks(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    """Rejects what isn't open any more, and ends the run for a thousand."""
    assert data.agent.name == "clerk"
    with pytest.raises(AttributeError, match="has a name, and no 'tools'"):
        _ = data.agent.tools
    if '"cents": 1000' in data.context.tool_arguments:
        return ToolGuardrailFunctionOutput.raise_exception()
    if OPEN[0] == "yes":
        return ToolGuardrailFunctionOutput.allow()
    return ToolGuardrailFunctionOutput.reject_content("closed by now")


def hides(data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
    """Replaces a result."""
    if data.output == "refunded 7":
        return ToolGuardrailFunctionOutput.reject_content("hidden")
    return ToolGuardrailFunctionOutput.allow()


GUARDED: dict[str, Any] = {
    "tool_input_guardrails": [ToolInputGuardrail(looks)],
    "tool_output_guardrails": [ToolOutputGuardrail(hides)],
}


async def test_s2_26_guardrails_look_again_after_the_approval(client: Client, cache: int) -> None:
    OPEN[0] = "yes"
    script = Script({"pay": {"cents": 7}}, {"refund": {"cents": 5}}, "done")
    app = an_app(script, gated("refund", True, **GUARDED), gated("pay", False, **GUARDED))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        (row,) = await pending(handle, 1)
        OPEN[0] = "no"
        await update(handle, "approve", {"call": row["call"], "by": "bob"})
        await handle.result()
        assert list((await answers(handle)).values()) == [("success", "hidden"), ("failed", "closed by now")]
    assert RAN == [("pay", 7)]


async def test_a_guardrail_may_end_the_run(client: Client) -> None:
    script = Script({"pay": {"cents": 1000}}, "done")
    async with working(client, an_app(script, gated("pay", False, **GUARDED))) as runs:
        failure = await runs.failure("clerk", "go", params=ANN)
    assert failure.type == "ToolInputGuardrailTripwireTriggered"
    assert RAN == []


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
