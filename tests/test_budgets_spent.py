"""Limits of what requests cost and of how large one may be."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage
from temporalio.client import Client

from perdure import App, DurableAgent, Limits
from tests.budgets import ASK, limit, raised
from tests.harness import activities, until, working
from tests.sessions import runs_of


def priced(*costs: str | None, **options: Any) -> App:
    """An agent whose requests cost this, each with 100 input tokens, a call after each but the last."""

    def ask(asked: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        done = sum(isinstance(message, ModelResponse) for message in asked)
        cost = costs[done]
        usage = RequestUsage(input_tokens=100, cost=None if cost is None else Decimal(cost))
        last = done + 1 == len(costs)
        return ModelResponse(parts=[TextPart("done") if last else ToolCallPart("note", {})], usage=usage)

    def note() -> str:
        return "noted"

    return App(agents=[DurableAgent(Agent(FunctionModel(ask), name="spends", tools=[note]), **options)])


async def test_an_unknown_cost_asks_or_is_ignored_as_configured(client: Client, cache: int) -> None:
    limits = Limits(cost=Decimal(5))
    async with working(client, priced("1", None, "1", limits=limits, **ASK), cache=cache) as runs:
        handle = await runs.start("spends", "go")
        row = await limit(handle, "unpriced_requests")
        assert row["args"] == {"limit": "unpriced_requests", "used": 1, "allowed": 0}
        await raised(handle, unpriced_requests=1)
        usage = (await handle.result())["usage"]
        assert (usage["cost"], usage["unpriced_requests"]) == ("2", 1)
    ignored = Limits(cost=Decimal(5), unpriced_requests=None)
    async with working(client, priced("1", None, "1", limits=ignored), cache=cache) as runs:
        assert (await runs.run("spends", "go"))["usage"]["unpriced_requests"] == 1


async def test_cost_asks_after_the_request_that_went_over(client: Client, cache: int) -> None:
    async with working(client, priced("1", "1", "1", limits=Limits(cost=Decimal("1.5")), **ASK), cache=cache) as runs:
        handle = await runs.start("spends", "go")
        row = await limit(handle, "cost")
        assert row["args"] == {"limit": "cost", "used": "2", "allowed": "1.5"}
        assert await activities(handle) == ["model_request", "tool:note", "model_request"]
        await raised(handle, cost="3")
        assert (await handle.result())["usage"]["cost"] == "3"


class Counting(FunctionModel):
    """A model that counts before it is asked."""

    async def count_tokens(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> RequestUsage:
        return RequestUsage(input_tokens=100 * len(messages))


@pytest.mark.parametrize("model", [Counting, FunctionModel])
async def test_input_of_one_request(client: Client, cache: int, model: type[FunctionModel]) -> None:
    """A model that can count isn't asked; of another the response is kept, and nobody is asked twice."""
    asked: list[int] = []

    def ask(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(len(messages))
        part = TextPart("done") if len(messages) > 1 else ToolCallPart("note", {})
        return ModelResponse(parts=[part], usage=RequestUsage(input_tokens=100 * len(messages)))

    def note() -> str:
        return "noted"

    agent = Agent(model(ask), name="reads", tools=[note])
    limits = Limits(request_input_tokens=200)
    async with working(client, App(agents=[DurableAgent(agent, limits=limits, **ASK)]), cache=cache) as runs:
        handle = await runs.start("reads", "go")
        row = await limit(handle, "request_input_tokens")
        assert row["args"] == {"limit": "request_input_tokens", "used": 300, "allowed": 200}
        assert asked == ([1] if model is Counting else [1, 3])
        await raised(handle, request_input_tokens=300)
        result = await handle.result()
        assert (result["output"], result["steps"], result["usage"]["requests"]) == ("done", 2, 2)
    async with working(client, App(agents=[DurableAgent(agent, limits=limits)]), cache=cache) as runs:
        failure = await runs.failure("reads", "go")
    assert (failure.type, asked.count(3)) == ("LimitExceeded", 1 if model is Counting else 2)
    assert "has 300 input tokens, its limit is 200" in failure.message


async def test_a_request_that_is_too_large_waits_also_when_the_run_continues_as_new(
    rolling_client: Client, cache: int
) -> None:
    asked: list[int] = []

    def ask(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(len(messages))
        return ModelResponse(parts=[TextPart("done")])

    durable = DurableAgent(Agent(Counting(ask), name="reads"), limits=Limits(request_input_tokens=50), **ASK)
    async with working(rolling_client, App(agents=[durable]), cache=cache) as runs:
        handle = await runs.start("reads", "go")
        await limit(handle, "request_input_tokens")
        assert await runs_of(handle) == 1
        for n in range(8):
            await handle.signal("approve", {"call": "nothing", "by": str(n)})

        async def rolled() -> bool:
            return await runs_of(handle) == 2

        await until(rolled)
        row = await limit(handle, "request_input_tokens")
        assert (row["call"], row["args"]["used"], asked) == ("limit-1", 100, [])
        await raised(handle, request_input_tokens=100)
        result = await handle.result()
        assert (result["output"], result["steps"], asked) == ("done", 1, [1])
