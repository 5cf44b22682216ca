"""Faults that a review found, each with what is right."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError

from perdure import App, DeclarationError, DurableAgent, Limits, ToolPolicy, progress
from tests.harness import activities, failure_of, until, working
from tests.scripts import Script


class Answer(BaseModel):
    text: str


async def test_a_cancel_while_the_model_is_asked_begins_no_tool(client: Client, cache: int) -> None:
    ran: list[str] = []
    asked = asyncio.Event()

    async def slow(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.set()
        await asyncio.sleep(0.5)
        return ModelResponse(parts=[ToolCallPart("pay", {})])

    tools = FunctionToolset[None](id="tools")

    @tools.tool_plain
    def pay() -> str:
        """Unsafe."""
        ran.append("pay")
        return "paid"

    app = App(agents=[Agent(FunctionModel(slow), name="payer", toolsets=[tools])])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("payer", "go")
        await asked.wait()
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as raised:
            await handle.result()
        assert isinstance(raised.value.cause, CancelledError)
        assert await activities(handle) == ["model_request"]
    assert not ran


async def test_a_start_just_under_temporals_limit_fails_typed(client: Client) -> None:
    async with working(client, App(agents=[Agent(Script("x").model, name="big")])) as runs:
        failure = await runs.failure("big", "x" * (2 * 1024 * 1024 - 200))
    assert failure.type == "InvalidRequest"
    assert "it may have 1500000" in failure.message


@pytest.mark.parametrize("size", [0, 1_100_000])
async def test_a_tool_that_ends_the_run_always_ends_it(client: Client, size: int) -> None:
    def stop() -> str:
        """Ends the run."""
        raise ApplicationError("", "x" * size, type="Stop", non_retryable=True)

    app = App(agents=[Agent(Script({"stop": {}}).model, name="stopper", tools=[stop])])
    async with working(client, app) as runs:
        failure = await runs.failure("stopper", "go")
    assert failure.type == "Stop"
    assert list(failure.details) == ([""] if not size else [])


@pytest.mark.parametrize("value", [-5, 0, float("nan"), float("inf"), timedelta(0)])
def test_a_time_that_is_none_is_refused(value: Any) -> None:
    agent = Agent(Script("x").model, name="timed")
    with pytest.raises(DeclarationError, match="model_timeout="):
        DurableAgent(agent, model_timeout=value)
    with pytest.raises(DeclarationError, match="heartbeat="):
        ToolPolicy(heartbeat=value)


async def test_output_calls_have_an_answer_when_the_run_ends_before_them(client: Client) -> None:
    def look() -> str:
        """Harmless."""
        return "seen"

    both = [ToolCallPart("look", {}), ToolCallPart("final_result", {"text": "done"})]
    agent = Agent(Script(both).model, name="both", tools=[look], output_type=Answer)  # pyright: ignore[reportArgumentType]
    app = App(agents=[DurableAgent(agent, limits=Limits(tool_calls=0))])
    async with working(client, app) as runs:  # which checks that each call has its answer
        failure = await runs.failure("both", "go")
    assert failure.type == "LimitExceeded"


async def test_a_request_without_a_price_is_counted_once(client: Client) -> None:
    def look() -> str:
        """Harmless."""
        return "seen"

    both = [ToolCallPart("look", {}), ToolCallPart("final_result", {"text": "done"})]
    agent = Agent(Script(both).model, name="both", tools=[look], output_type=Answer)  # pyright: ignore[reportArgumentType]
    async with working(client, App(agents=[agent])) as runs:
        usage = (await runs.run("both", "go"))["usage"]
    assert (usage["requests"], usage["unpriced_requests"]) == (1, 1)


async def test_half_a_character_of_progress_harms_nobody(client: Client) -> None:
    done = asyncio.Event()

    async def work() -> str:
        """Shows half an emoji."""
        progress("working \ud83d")
        await done.wait()
        return "worked"

    app = App(agents=[Agent(Script({"work": {}}, "done").model, name="worker", tools=[work])])
    async with working(client, app) as runs:
        handle = await runs.start("worker", "go")

        async def shown() -> bool:
            pending = (await handle.describe()).raw_description.pending_activities
            return any(
                "working \ufffd" in json.loads(payload.data)["text"]
                for one in pending
                for payload in one.heartbeat_details.payloads
            )

        await until(shown)
        done.set()
        assert (await handle.result())["output"] == "done"


async def test_a_search_attribute_that_is_not_registered_hangs_nothing(client: Client) -> None:
    with pytest.raises(DeclarationError, match=r"search_attributes=\['Nothing'\] are not set"):
        App(agents=[Agent(Script("x").model, name="a")], search_attributes=["Nothing"])


async def test_a_user_error_after_the_answer_is_not_paid_twice(client: Client) -> None:
    def broken(text: str) -> str:
        """An output function that Temporal would repeat."""
        raise ApplicationError("later", type="Later")

    script = Script({"final_result": {"text": "done"}})
    async with working(client, App(agents=[Agent(script.model, name="broken", output_type=broken)])) as runs:
        failure = await failure_of(await runs.start("broken", "go"))
    assert failure.type == "Later"
    assert len(script.requests) == 1
