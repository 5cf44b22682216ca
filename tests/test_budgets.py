"""Limits that are reached: the run asks people, and goes on where it stood; or it fails, typed."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client

from perdure import App, Approval, DurableAgent, Limits
from perdure.client import PerdureClient
from tests.deciding import Row, cancelled, pending, refused, update
from tests.harness import Handle, activities, failure_of, until, working
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed, runs_of, send, turn

ASK: dict[str, Any] = {"on_limit": "ask"}


def counter(ran: list[int], script: Script, **options: Any) -> App:
    """An agent with a tool that counts its calls."""

    def count(number: int) -> int:
        ran.append(number)
        return number

    return App(agents=[DurableAgent(Agent(script.model, name="counts", tools=[count]), **options)])


def steps(number: int, calls: int = 1) -> Script:
    """A script of so many steps with so many calls each, and then an output."""
    turns = [[ToolCallPart("count", {"number": step * 10 + n}) for n in range(calls)] for step in range(number)]
    return Script(*turns, "done")  # pyright: ignore[reportArgumentType]


def most(name: str, value: Any) -> Limits:
    """Limits with this one."""
    return Limits.model_validate({name: value})


async def limit(handle: Handle, name: str) -> Row:
    """What waits, once the run waits at this limit and nothing else."""
    (row,) = await pending(handle, 1)
    assert (row["kind"], row["args"]["limit"]) == ("limit", name)
    return row


async def raised(handle: Handle, **limits: Any) -> dict[str, Any]:
    """Set limits, as any client would."""
    return await update(handle, "set_limits", {"limits": limits, "by": "ann"})


async def test_a_run_asks_before_a_request_and_goes_on_where_it_stood(client: Client, cache: int) -> None:
    ran: list[int] = []
    script = steps(3)
    async with working(client, counter(ran, script, limits=Limits(requests=2), **ASK), cache=cache) as runs:
        handle = await runs.start("counts", "go")
        row = await limit(handle, "requests")
        assert row["args"] == {"limit": "requests", "used": 2, "allowed": 2, "needed": 3}
        assert (row["call"], row["tool"], row["approvers"]) == ("limit-1", "", [])
        assert (await handle.query("status"))["state"] == "waiting"
        assert ran == [0, 10]
        answer = await raised(handle, requests=3)
        assert (answer["limits"]["requests"], answer["waits"]) == (3, [])
        row = await limit(handle, "requests")
        assert (row["call"], row["args"]["allowed"]) == ("limit-2", 3)
        await handle.signal("set_limits", {"limits": {"requests": None}})
        assert (await handle.result())["output"] == "done"
        assert await activities(handle) == ["model_request", "tool:count"] * 3 + ["model_request"]
        events = [(row["event"], row.get("by")) for row in await handle.query("audit")]
    assert (ran, len(script.requests)) == ([0, 10, 20], 4)
    assert events == [("asked", None), ("set_limits", "ann"), ("asked", None), ("set_limits", None)]


async def test_too_little_keeps_it_waiting_and_the_row_says_so(client: Client, cache: int) -> None:
    ran: list[int] = []
    options: Any = {"limits": Limits(tool_calls=1, requests=1), **ASK}
    async with working(client, counter(ran, steps(1, calls=3), **options), cache=cache) as runs:
        handle = await runs.start("counts", "go")
        row = await limit(handle, "tool_calls")
        assert row["args"] == {"limit": "tool_calls", "used": 0, "allowed": 1, "needed": 3}
        assert (await raised(handle, tool_calls=2))["waits"] == ["limit-1"]
        assert (await limit(handle, "tool_calls"))["args"]["allowed"] == 2
        assert ran == []
        assert (await raised(handle, tool_calls=3))["waits"] == []
        await limit(handle, "requests")
        assert sorted(ran) == [0, 1, 2]
        await raised(handle, requests=5)
        await handle.result()
    assert sorted(ran) == [0, 1, 2]


@pytest.mark.parametrize("at", ["requests", "tool_calls"])
async def test_who_denies_it_ends_the_run_typed(client: Client, cache: int, at: str) -> None:
    ran: list[int] = []
    options: Any = {"limits": most(at, 0), "limit_approval": Approval(approvers=["ann"]), **ASK}
    async with working(client, counter(ran, steps(1), **options), cache=cache) as runs:
        handle = await runs.start("counts", "go")
        await limit(handle, at)
        assert "use set_limits or deny" in await refused(handle, "approve", {"call": "limit-1", "by": "ann"})
        assert "use set_limits or deny" in await refused(handle, "complete", {"call": "limit-1", "result": 1})
        assert "NotAllowed" in await refused(handle, "deny", {"call": "limit-1", "by": "eve"})
        assert "NotAllowed" in await refused(handle, "set_limits", {"limits": {at: 5}, "by": "eve"})
        await update(handle, "deny", {"call": "limit-1", "by": "ann", "reason": "too dear"})
        failure = await failure_of(handle)
    assert (failure.type, ran) == ("LimitExceeded", [])
    assert failure.message.endswith("limit is 0; raising it was denied by 'ann': too dear")


async def test_nobody_raises_it_in_time(client: Client, cache: int) -> None:
    approval = Approval(expires_after=timedelta(milliseconds=300))
    app = counter([], steps(1), limits=Limits(requests=0), limit_approval=approval, **ASK)
    async with working(client, app, cache=cache) as runs:
        failure = await runs.failure("counts", "go")
    assert failure.type == "LimitExceeded"
    assert failure.message.endswith("limit is 0; nobody raised it in time")


async def test_a_run_that_waits_at_a_limit_is_canceled(client: Client, cache: int) -> None:
    async with working(client, counter([], steps(1), limits=Limits(tool_calls=0), **ASK), cache=cache) as runs:
        handle = await runs.start("counts", "go")
        await limit(handle, "tool_calls")
        await cancelled(handle)


async def test_a_worker_restarts_while_a_run_waits_at_a_limit(client: Client) -> None:
    ran: list[int] = []
    app = counter(ran, steps(2), limits=Limits(requests=1), **ASK)
    async with working(client, app, check=False) as runs:
        handle = await runs.start("counts", "go")
        await limit(handle, "requests")
    async with working(client, app, task_queue=runs.task_queue) as runs:
        runs.handles.append(handle)
        assert (await limit(handle, "requests"))["call"] == "limit-1"
        await raised(handle, requests=9)
        assert (await handle.result())["output"] == "done"
    assert ran == [0, 10]


@pytest.mark.parametrize("at", ["requests", "tool_calls"])
async def test_the_wait_is_carried_when_the_run_continues_as_new(rolling_client: Client, cache: int, at: str) -> None:
    ran: list[int] = []
    script = steps(6)
    async with working(rolling_client, counter(ran, script, limits=most(at, 3), **ASK), cache=cache) as runs:
        handle = await runs.start("counts", "go")
        await limit(handle, at)
        before = await runs_of(handle)
        for n in range(12):
            await handle.signal("approve", {"call": "nothing", "by": str(n)})

        async def rolled() -> bool:
            return await runs_of(handle) > before

        if at == "tool_calls":  # it stands in a step, whose request was made in this run of the chain
            await until(rolled)
        assert (await limit(handle, at))["call"] == "limit-1"
        await raised(handle, **{at: 100})
        assert (await handle.result())["output"] == "done"
        asked = [row for row in await handle.query("audit") if row["event"] == "asked"]
    assert (ran, len(script.requests), len(asked)) == ([0, 10, 20, 30, 40, 50], 7, 1)


async def test_a_turn_has_limits_of_its_own(client: Client, cache: int) -> None:
    ran: list[int] = []
    script = Script("hello", {"count": {"number": 1}}, {"count": {"number": 2}}, "fine")
    options: Any = {"limits": Limits(turn_requests=1, turn_tool_calls=5)}
    async with working(client, counter(ran, script, **options), cache=cache) as runs:
        handle = await runs.start("counts", **SESSION)
        assert await answered(handle, "hi") == "hello"
        sent = await send(handle, "count")
        failed = await turn(handle, message=sent["messages"][0])
        assert (failed["state"], failed["error"]["type"]) == ("failed", "LimitExceeded")
        assert "the turn has made 1 model requests, its limit is 1" in failed["error"]["message"]
        assert "may not be more than the agent allows (1)" in await refused(
            handle, "set_limits", {"limits": {"turn_requests": 2}}
        )
        result = await closed(handle)
        assert (result["turns"], result["failure"]["type"]) == (2, "LimitExceeded")
    assert ran == [1]


async def test_a_session_over_its_limit_fails_every_turn_until_it_is_raised(client: Client, cache: int) -> None:
    script = Script("hello", "again")
    approval = Approval(approvers=["ann"])
    app = counter([], script, limits=Limits(requests=1), limit_approval=approval)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("counts", **SESSION)
        assert await answered(handle, "hi") == "hello"
        for _ in range(2):
            sent = await send(handle, "more")
            failed = await turn(handle, message=sent["messages"][0])
            assert (failed["state"], failed["error"]["type"]) == ("failed", "LimitExceeded")
        await raised(handle, requests=2)
        assert await answered(handle, "more") == "again"
        assert (await closed(handle))["output"] == "again"


@pytest.mark.parametrize("at", ["turn_requests", "turn_tool_calls"])
async def test_an_interrupt_ends_a_turn_that_waits_at_a_limit(client: Client, cache: int, at: str) -> None:
    ran: list[int] = []
    calls = Script("hello") if at == "turn_requests" else Script({"count": {"number": 1}}, "hello")
    app = counter(ran, calls, limits=most(at, 0), **ASK)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("counts", "hi", **SESSION)
        await limit(handle, at)
        await update(handle, "interrupt", {"by": "ann"})
        assert (await turn(handle, turn=1))["state"] == "interrupted"
        assert await pending(handle, 0) == []
        await raised(handle, **{at: 1})
        assert await answered(handle, "again") == "hello"
        await closed(handle)
    assert ran == []


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


async def test_the_web_ui_shows_what_raises_it(client: Client) -> None:
    async with working(client, counter([], steps(1), limits=Limits(requests=0), **ASK)) as runs:
        handle = await runs.start("counts", "go")
        await limit(handle, "requests")
        shown = (await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)).current_details
        blocks = "\n".join(line[4:] for line in shown.split("\n") if line.startswith("    "))
        assert '{\n  "limits": {\n    "requests": 1\n  },\n  "by": "your name"\n}' in blocks
        assert '{\n  "call": "limit-1",\n  "by": "your name"\n}' in blocks
        await raised(handle, requests=9)
        await handle.result()


async def test_a_deadline_asks_before_the_next_request(client: Client, cache: int) -> None:
    options: Any = {"limits": Limits(turn_deadline=timedelta(milliseconds=1)), **ASK}
    async with working(client, counter([], steps(1), **options), cache=cache) as runs:
        handle = await runs.start("counts", "go")
        row = await limit(handle, "turn_deadline")
        assert row["args"]["allowed"] == "PT0.001S"
        await raised(handle, turn_deadline="PT1H")
        assert (await handle.result())["output"] == "done"


async def test_a_deadline_is_set_anew_while_a_call_runs(client: Client, cache: int) -> None:
    begun: list[int] = []

    async def wait() -> str:
        begun.append(1)
        await asyncio.Event().wait()
        return "never"

    app = App(agents=[DurableAgent(Agent(Script({"wait": {}}).model, name="waits", tools=[wait]))])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("waits", "go", limits={"deadline": "PT1H"})
        await until(lambda: bool(begun))
        await raised(handle, turn_deadline="PT0.1S")
        failure = await failure_of(handle)
    assert (failure.type, failure.message) == ("LimitExceeded", "the turn's deadline of 0:00:00.100000 has passed")


async def test_set_limits_says_what_is_wrong_with_it(client: Client) -> None:
    app = counter([], Script("hello"), limits=Limits(requests=5))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "request.limits: Field required"),
        ({"limits": {}}, "limits is empty"),
        ({"limits": {"request": 3}}, "request.limits.request: Extra inputs"),
        ({"limits": {"requests": -1}}, "greater than or equal to 0"),
        ({"limits": {"requests": 6}}, "NotAllowed: limits.requests may not be more than the agent allows (5)"),
        ({"limits": {"requests": None}}, "NotAllowed"),
        ({"limits": {"requests": 3}, "token": "x"}, "has no verifier"),
    ]
    async with working(client, app) as runs:
        handle = await runs.start("counts", **SESSION)
        for sent, why in wrong:
            assert why in await refused(handle, "set_limits", sent)
        await handle.signal("set_limits", {"limits": {"requests": 6}})
        status = await handle.query("status")
        assert (status["limits"]["requests"], status["rejected"][0]["signal"]) == (5, "set_limits")
        answer = await PerdureClient(client).run(handle.id).set_limits(Limits(requests=4), by="ann")
        assert answer.limits.requests == 4
        await closed(handle)
