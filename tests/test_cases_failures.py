"""Cases E2, H1, I1, J1: tools and models that fail, and who retries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.exceptions import ModelHTTPError, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from perdure import App, DurableAgent, ToolPolicy, current_call
from tests.harness import activities, attempts, messages, working
from tests.reading import returns
from tests.scripts import Script


@pytest.mark.parametrize("effect", ["unsafe", "idempotent", "safe"])
async def test_case_e2_a_non_retryable_error_ends_the_run_as_it_was_raised(
    client: Client, cache: int, effect: Any
) -> None:
    ran: list[str] = []

    def charge() -> str:
        ran.append("charge")
        raise ApplicationError("card 42 was declined", {"code": 51}, "again", type="Card", non_retryable=True)

    app = App(
        agents=[
            DurableAgent(
                Agent(Script({"charge": {}}).model, name="shop", tools=[charge]),
                policies={"charge": ToolPolicy(effect=effect)},
            )
        ]
    )
    async with working(client, app, cache=cache) as runs:
        failure = await runs.failure("shop", "go", timeout=timedelta(seconds=10))
    assert (failure.type, failure.message, failure.details) == ("Card", "card 42 was declined", ({"code": 51}, "again"))
    assert failure.non_retryable
    assert ran == ["charge"]


async def test_case_e2_a_sibling_still_ends_and_is_recorded(client: Client, cache: int) -> None:
    ran: list[str] = []

    def charge() -> str:
        ran.append("charge")
        raise ApplicationError("declined", type="Card", non_retryable=True)

    async def note() -> str:
        ran.append("note")
        return "noted"

    script = Script([ToolCallPart("charge", {}), ToolCallPart("note", {})])
    app = App(agents=[Agent(script.model, name="shop", tools=[charge, note])])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("shop", "go")
        with pytest.raises(Exception, match="Workflow execution failed"):
            await handle.result()
        told = {part.tool_name: part.outcome for part in returns(await messages(handle))}
    assert told == {"charge": "failed", "note": "success"}
    assert sorted(ran) == ["charge", "note"]


async def test_case_h1_a_retry_is_told_to_the_model_and_not_repeated_by_temporal(client: Client, cache: int) -> None:
    ran: list[str] = []

    def fetch(page: str) -> str:
        ran.append(page)
        if page == "missing":
            raise ModelRetry("404: no such page, known pages: ['home']")
        return "welcome"

    script = Script({"fetch": {"page": "missing"}}, {"fetch": {"page": "home"}}, "done")
    policy = ToolPolicy(effect="safe")
    app = App(agents=[DurableAgent(Agent(script.model, name="web", tools=[fetch]), policies={"fetch": policy})])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("web", "go")
        assert (await handle.result())["output"] == "done"
        assert await attempts(handle) == [1] * 5
        assert await activities(handle) == ["model_request", "tool:fetch"] * 2 + ["model_request"]
    assert ran == ["missing", "home"]
    assert len(script.requests) == 3
    (part,) = returns(script.requests[1])
    assert "404: no such page" in part.model_response_str()
    assert part.outcome == "retried"


@pytest.mark.parametrize("error", [ToolFailed("no such order"), KeyError("secret")])
async def test_case_h1_whatever_a_tool_raises_crosses_as_data(client: Client, cache: int, error: Exception) -> None:
    ran: list[str] = []

    def fetch() -> str:
        ran.append("fetch")
        raise error

    script = Script({"fetch": {}}, "done")
    async with working(client, App(agents=[Agent(script.model, name="web", tools=[fetch])]), cache=cache) as runs:
        handle = await runs.start("web", "go")
        assert (await handle.result())["output"] == "done"
        assert await attempts(handle) == [1, 1, 1]
    assert ran == ["fetch"]
    (part,) = returns(script.requests[1])
    assert part.outcome != "success"
    assert "secret" not in part.model_response_str()


async def test_case_h1_the_retry_budget_is_the_agents(client: Client, cache: int) -> None:
    seen: list[tuple[int, int]] = []

    def fetch_page(ctx: RunContext[object]) -> str:
        seen.append((ctx.retry, current_call().attempt))
        raise ModelRetry("try again")

    script = Script({"fetch_page": {}}, {"fetch_page": {}}, {"fetch_page": {}})
    agent = Agent(script.model, name="web", tools=[fetch_page], retries=2)
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        failure = await runs.failure("web", "go")
    assert failure.type == "UnexpectedModelBehavior"
    assert seen == [(0, 1), (1, 1), (2, 1)], "the model's retries count up, Temporal's attempts don't"


async def test_case_i1_malformed_arguments_are_mended_and_kept_readable(client: Client, cache: int) -> None:
    ran: list[int] = []

    def add(x: int) -> int:
        ran.append(x)
        return x

    raw = '{"x": 1'

    def second(asked: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        for message in asked:
            for part in message.parts:
                if isinstance(part, ToolCallPart):
                    assert part.args_as_dict() == {"INVALID_JSON": raw}, "must be readable as an object"
                    assert part.args == raw, "the raw text is not lost"
        return ModelResponse(parts=[ToolCallPart("add", {"x": 2}, tool_call_id="good")])

    script = Script([ToolCallPart("add", raw)], second, "done")
    async with working(client, App(agents=[Agent(script.model, name="sums", tools=[add])]), cache=cache) as runs:
        handle = await runs.start("sums", "go")
        assert (await handle.result())["output"] == "done"
        assert await activities(handle) == ["model_request", "model_request", "tool:add", "model_request"]
        kept = await messages(handle)
    assert ran == [2]
    reads = FunctionModel(lambda asked, _: ModelResponse(parts=[TextPart(f"read {len(asked)}")]))
    resumed = await Agent(reads, tools=[add]).run("more", message_history=kept)
    assert resumed.output == f"read {len(kept) + 1}"


@pytest.mark.parametrize("attempts_allowed", [1, 2])
async def test_case_j1_only_temporal_retries_a_model_request(client: Client, cache: int, attempts_allowed: int) -> None:
    asked: list[int] = []

    def overloaded(asked_with: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(len(asked_with))
        assert dict(info.model_settings or {})["max_retries"] == 0
        raise ModelHTTPError(503, "busy")

    agent = Agent(FunctionModel(overloaded), name="busy")
    app = App(agents=[DurableAgent(agent, model_attempts=attempts_allowed)])
    async with working(client, app, cache=cache) as runs:
        failure = await runs.failure("busy", "go")
    assert len(asked) == attempts_allowed
    assert failure.type == "ModelHTTPError"


async def test_case_j1_a_permanent_error_of_the_provider_is_not_repeated(client: Client) -> None:
    asked: list[int] = []

    def refused(asked_with: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(1)
        raise ModelHTTPError(401, "who")

    async with working(client, App(agents=[Agent(FunctionModel(refused), name="who")])) as runs:
        await runs.failure("who", "go")
    assert asked == [1]


async def test_case_j1_the_default_is_finite_and_stated(client: Client) -> None:
    agent = Agent(Script("x").model, name="plain")
    assert DurableAgent(agent).model_attempts == 5
    assert ToolPolicy(effect="safe").options().attempts == 5
    assert ToolPolicy().options().attempts == 1


async def test_case_j1_a_tools_own_attempts_are_what_its_policy_says(client: Client, cache: int) -> None:
    ran: list[tuple[int, str]] = []

    def flaky() -> str:
        call = current_call()
        ran.append((call.attempt, call.idempotency_key))
        raise ConnectionError("reset by peer")

    policy = ToolPolicy(effect="idempotent", attempts=3, backoff=0.05)
    script = Script({"flaky": {}}, "done")
    app = App(agents=[DurableAgent(Agent(script.model, name="net", tools=[flaky]), policies={"flaky": policy})])
    async with working(client, app, cache=cache) as runs:
        await runs.run("net", "go")
    assert [attempt for attempt, _ in ran] == [1, 2, 3]
    assert len({key for _, key in ran}) == 1
    (part,) = returns(script.requests[1])
    assert (part.outcome, part.content) == ("failed", "The tool failed with ConnectionError.")
