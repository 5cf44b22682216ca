"""Compactions that fail or are no use, what they cost, what is refused."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client

from perdure import App, DurableAgent, Limits
from tests.compacting import Summarizer, app, counting, summaries
from tests.harness import Handle, activities, failure_of, until, working


async def test_a_summary_that_fails_for_good_leaves_the_conversation_whole(client: Client, cache: int) -> None:
    refused = ModelHTTPError(401, "short", "no key")
    script, summarizer = counting(7), Summarizer(*[refused] * 9)
    async with working(client, app(script, summarizer), cache=cache) as runs:
        handle = await runs.start("shop", "Look at all.")
        assert (await handle.result())["output"] == "done"
        status = await handle.query("status")
        assert (await activities(handle)).count("compact") == len(summarizer.asked)
    assert [len(messages) for messages in script.requests] == [1, 3, 5, 7, 9, 11, 13, 15]
    assert len(summarizer.asked) == 5, "above 450 and, each time, a tenth more than the time before"
    assert len(status["warnings"]) == 5
    assert "after step 3 the conversation could not be compacted" in status["warnings"][0]
    assert status["usage"]["requests"] == 8


async def test_a_summary_is_repeated_by_temporal(client: Client) -> None:
    script, summarizer = counting(3), Summarizer(ModelHTTPError(503, "short", "busy"))
    async with working(client, app(script, summarizer)) as runs:
        result = await runs.run("shop", "Look at all.")
    assert len(summarizer.asked) == 2
    assert summaries(script.requests[-1]) == ["Summary: saw-1 saw-2"]
    assert result["usage"]["requests"] == 4 + 1


async def test_a_compaction_that_is_no_use_is_not_made_in_every_step(client: Client) -> None:
    script, summarizer = counting(12), Summarizer()
    async with working(client, app(script, summarizer, compact_above=50)) as runs:
        handle = await runs.start("shop", "Look at all.")
        await handle.result()
        made = (await activities(handle)).count("compact")
    assert made == 1 + 6, "the first finds nothing; then every other step, as right after one the context has not grown"


async def test_with_nothing_to_cover_the_model_is_not_asked(client: Client) -> None:
    script, summarizer = counting(6), Summarizer()
    async with working(client, app(script, summarizer, compact_keep=1_000_000)) as runs:
        handle = await runs.start("shop", "Look at all.")
        await handle.result()
        status = await handle.query("status")
        assert (await activities(handle)).count("compact") == 4
    assert summarizer.asked == []
    assert status["warnings"] == []
    assert len(script.requests[-1]) == 13


@pytest.mark.parametrize(("most", "compactions"), [(3, 0), (4, 0), (5, 1)])
async def test_a_summary_counts_as_a_request_and_leaves_one(client: Client, most: int, compactions: int) -> None:
    script, summarizer = counting(3), Summarizer()
    async with working(client, app(script, summarizer, limits=Limits(requests=most))) as runs:
        handle = await runs.start("shop", "Look at all.")
        if most == 3:
            assert (await failure_of(handle)).type == "LimitExceeded"
        else:
            assert (await handle.result())["output"] == "done"
        assert (await activities(handle)).count("compact") == compactions


async def test_the_tokens_of_a_summary_are_limited_too(client: Client) -> None:
    limits = Limits(input_tokens=900 + 6)  # three requests take 900, the summary 7
    async with working(client, app(counting(3), Summarizer(), limits=limits)) as runs:
        failure = await runs.failure("shop", "Look at all.")
    assert failure.type == "LimitExceeded"
    assert "907 input_tokens" in failure.message


async def test_a_run_that_is_cancelled_while_it_is_compacted_ends(client: Client) -> None:
    began = asyncio.Event()

    async def slow(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        began.set()
        await asyncio.sleep(300)
        raise AssertionError("it should have been cancelled")

    script = counting(4)
    one = app(script, models={"slow": FunctionModel(slow)}, compact_with="slow")
    async with working(client, one) as runs:
        handle = await runs.start("shop", "Look at all.", timeout=timedelta(seconds=40))
        await asyncio.wait_for(began.wait(), 20)
        await handle.cancel()
        await until(lambda: _ended(handle))
        assert (await handle.describe()).status.name == "CANCELED"  # pyright: ignore[reportOptionalMemberAccess]
    assert len(script.requests) == 3


async def _ended(handle: Handle) -> bool:
    return (await handle.describe()).close_time is not None


async def test_where_the_model_then_refuses_its_own_error_ends_the_run(client: Client) -> None:
    def turn(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 5:
            raise ModelHTTPError(400, "long", "the context is too long")
        return script(messages, info)

    script = counting(8)
    tools = FunctionToolset[object](id="shop")

    @tools.tool_plain
    def look(n: int) -> str:
        return f"saw-{n}"

    agent = Agent(FunctionModel(turn), name="shop", toolsets=[tools])
    broken = Summarizer(*[ModelHTTPError(401, "short", "no key")] * 9).model
    options: dict[str, Any] = {"compact_above": 450, "compact_keep": 0, "models": {"short": broken}}
    async with working(client, App(agents=[DurableAgent(agent, compact_with="short", **options)])) as runs:
        handle = await runs.start("shop", "Look at all.")
        failure = await failure_of(handle)
        status = await handle.query("status")
    assert failure.type == "ModelHTTPError"
    assert "too long" in failure.message
    assert len(status["warnings"]) == 1
