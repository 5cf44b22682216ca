"""Limits of a run: each ends it typed, says what was used, and leaves every call with an answer."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from decimal import Decimal
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage
from temporalio.client import Client

from perdure import App, DurableAgent, Limits
from tests.budgets import counter, steps, waits
from tests.harness import failure_of, working


async def test_requests(client: Client, cache: int) -> None:
    ran: list[int] = []
    async with working(client, counter(ran, steps(5), limits=Limits(requests=3)), cache=cache) as runs:
        failure = await runs.failure("counts", "go")
    assert (failure.type, ran) == ("LimitExceeded", [0, 10, 20])
    assert "3 model requests" in failure.message


async def test_a_run_may_lower_a_limit_and_not_raise_it(client: Client, cache: int) -> None:
    ran: list[int] = []
    async with working(client, counter(ran, steps(5), limits=Limits(requests=3)), cache=cache) as runs:
        lowered = await runs.failure("counts", "go", limits={"requests": 1})
        raised = await runs.failure("counts", "go", limits={"requests": 4})
    assert (lowered.type, raised.type, ran) == ("LimitExceeded", "InvalidRequest", [0])
    assert "limits.requests=4" in raised.message


async def test_tool_calls_of_a_step_that_would_go_over_dont_run_at_all(client: Client, cache: int) -> None:
    ran: list[int] = []
    async with working(client, counter(ran, steps(5, calls=2), limits=Limits(tool_calls=3)), cache=cache) as runs:
        failure = await runs.failure("counts", "go")
    assert (failure.type, sorted(ran)) == ("LimitExceeded", [0, 1])
    assert "limit is 3" in failure.message


async def test_tool_calls_reached_exactly_are_allowed(client: Client, cache: int) -> None:
    ran: list[int] = []
    async with working(client, counter(ran, steps(2, calls=2), limits=Limits(tool_calls=4)), cache=cache) as runs:
        assert (await runs.run("counts", "go"))["usage"]["tool_calls"] == 4


def spender(cost: Decimal | None) -> App:
    def ask(asked: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        usage = RequestUsage(input_tokens=100, output_tokens=10, cost=cost)
        done = sum(isinstance(message, ModelResponse) for message in asked)
        part = TextPart("done") if done == 3 else ToolCallPart("note", {}, tool_call_id=f"c{done}")
        return ModelResponse(parts=[part], usage=usage)

    def note() -> str:
        return "noted"

    return App(agents=[DurableAgent(Agent(FunctionModel(ask), name="spends", tools=[note]))])


async def test_tokens(client: Client, cache: int) -> None:
    async with working(client, spender(None), cache=cache) as runs:
        for limits in ({"input_tokens": 150}, {"output_tokens": 15}, {"total_tokens": 200}):
            failure = await runs.failure("spends", "go", limits=limits)
            assert (failure.type, next(iter(limits)) in failure.message) == ("LimitExceeded", True)
        enough = await runs.run("spends", "go", limits={"total_tokens": 440})
    assert (enough["usage"]["input_tokens"], enough["usage"]["output_tokens"]) == (400, 40)


async def test_cost(client: Client, cache: int) -> None:
    async with working(client, spender(Decimal("0.5")), cache=cache) as runs:
        failure = await runs.failure("spends", "go", limits={"cost": "1.2"})
        enough = await runs.run("spends", "go", limits={"cost": "2"})
    assert failure.type == "LimitExceeded"
    assert "1.5" in failure.message
    assert Decimal(enough["usage"]["cost"]) == 2


async def test_an_unknown_cost_is_not_zero(client: Client, cache: int) -> None:
    async with working(client, spender(None), cache=cache) as runs:
        failure = await runs.failure("spends", "go", limits={"cost": "1000"})
    assert failure.type == "LimitExceeded"
    assert "unknown" in failure.message


async def test_the_deadline_passes_while_a_tool_runs(client: Client, cache: int) -> None:
    begun: list[int] = []
    async with working(client, waits(begun), cache=cache) as runs:
        handle = await runs.start("waits", "go", limits={"deadline": "PT1S"}, timeout=timedelta(seconds=20))
        failure = await failure_of(handle)
        (kind,) = [row["kind"] for row in (await handle.query("transcript"))["entries"][-1]["outcomes"]]
    assert failure.type == "LimitExceeded"
    assert "deadline" in failure.message
    assert kind in ("cancelled", "unknown")
    assert begun == [1]


async def test_the_deadline_passes_while_the_model_is_asked(client: Client, cache: int) -> None:
    async def ask(asked: list[ModelMessage], info: AgentInfo) -> Any:
        await asyncio.Event().wait()

    async with working(client, App(agents=[Agent(FunctionModel(ask), name="waits")]), cache=cache) as runs:
        failure = await runs.failure("waits", "go", limits={"deadline": "PT1S"}, timeout=timedelta(seconds=20))
    assert failure.type == "LimitExceeded"
