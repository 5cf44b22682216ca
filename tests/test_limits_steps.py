"""Limits of docs/limits.md for a step: what the model answers, its calls and their results together, and an output."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import TextPart, ToolCallPart, ToolReturnPart
from pydantic_core import to_json
from temporalio.client import Client, WorkflowFailureError

from perdure import App, DurableAgent, ToolPolicy
from perdure.contracts import (
    MAX_ANSWERS,
    MAX_PAYLOAD,
    MAX_STORED,
)
from tests.harness import activities, attempts, failure_of, working
from tests.payloads import MB
from tests.scripts import Script


async def answers_of(client: Client, app: App, script: Script, cache: int = 1000) -> list[ToolReturnPart]:
    """The answers of a run's first step."""
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("many", "go")
        assert (await handle.result())["output"] == "done"
    return [part for part in script.requests[1][-1].parts if isinstance(part, ToolReturnPart)]


def many(count: int, result: Any, policy: ToolPolicy | None = None) -> tuple[Script, list[int], App]:
    """An agent that makes so many calls in one step."""
    ran: list[int] = []

    def work(number: int) -> Any:
        ran.append(number)
        return result

    script = Script([ToolCallPart("work", {"number": number}) for number in range(count)], "done")
    agent = Agent(script.model, name="many", tools=[work])
    policies = {"work": policy} if policy else {}
    return script, ran, App(agents=[DurableAgent(agent, max_parallel_calls=25, policies=policies)])


async def test_25_results_of_200_kilobytes(stored: Client, cache: int) -> None:
    """Without a store it is in test_cases_sizes.py."""
    script, ran, app = many(25, "r" * 200_000)
    parts = await answers_of(stored, app, script, cache)
    assert [(part.outcome, part.content) for part in parts] == [("success", "r" * 200_000)] * 25
    assert sorted(ran) == list(range(25))


@pytest.mark.parametrize("over", [False, True], ids=["just under", "just over"])
@pytest.mark.parametrize("with_store", [False, True], ids=["no store", "store"])
async def test_the_results_of_one_step_together(client: Client, stored: Client, with_store: bool, over: bool) -> None:
    """Each of 25 calls may answer with a 25th of 12 MB, whatever its policy says: one workflow task reads them all."""
    share = MAX_ANSWERS // 25
    envelope = len(to_json(ToolReturnPart("work", "", "c0.24", timestamp=datetime(2026, 1, 1, 0, 0, 0, 1, UTC))))
    policy = ToolPolicy(max_result_bytes=6 * MB) if with_store else None
    script, ran, app = many(25, "r" * (share - envelope + 200 * over), policy)
    parts = await answers_of(stored if with_store else client, app, script)
    assert {part.outcome for part in parts} == {"failed" if over else "success"}
    if over:
        assert re.fullmatch(
            rf"The tool ran, but its result has 480\d\d\d bytes; a result may have {share}\. Ask for less\.",
            str(parts[0].content),
        )
    assert sorted(ran) == list(range(25))


async def step_of(client: Client, text: str, *calls: ToolCallPart) -> tuple[list[str], Any]:
    """A run whose first response has this text and these calls: what ran, and its failure or output."""
    ran: list[str] = []

    def work(text: str) -> str:
        ran.append(text)
        return "ok"

    script = Script([TextPart(text), *calls], "done")
    app = App(agents=[DurableAgent(Agent(script.model, name="many", tools=[work]), model_attempts=1)])
    async with working(client, app) as runs:
        handle = await runs.start("many", "go")
        try:
            return ran, (await handle.result())["output"]
        except WorkflowFailureError as error:
            assert len(script.requests) == 1, "the model is asked once"
            return ran, error.cause


@pytest.mark.parametrize("with_store", [False, True], ids=["no store", "store"])
async def test_a_model_response(client: Client, stored: Client, with_store: bool) -> None:
    most = MAX_STORED if with_store else MAX_PAYLOAD
    mine = stored if with_store else client
    call = ToolCallPart("work", {"text": "x"})
    assert await step_of(mine, "t" * (most - 2_000), call) == (["x"], "done")
    ran, failure = await step_of(mine, "t" * most, call)
    assert failure.type == "OutputTooLarge"
    assert re.match(
        rf"the model's response and its plan have {most // 10_000}\d+ bytes; a step may have {most}\.", failure.message
    )
    assert ran == []


async def test_a_store_makes_no_more_room_for_calls(stored: Client) -> None:
    """The arguments of all calls of a step are sent by one workflow task."""
    fits = [ToolCallPart("work", {"text": "a" * 140_000}) for _ in range(10)]
    ran, output = await step_of(stored, "t" * 3 * MB, *fits)
    assert (len(ran), output) == (10, "done")
    over = [ToolCallPart("work", {"text": "a" * 150_000}) for _ in range(10)]
    ran, failure = await step_of(stored, "", *over)
    assert (ran, failure.type) == ([], "OutputTooLarge")
    assert re.fullmatch(
        r"the calls of the model's response have 150\d{4} bytes; together they may have 1500000", failure.message
    )


@pytest.mark.parametrize("with_store", [False, True], ids=["no store", "store"])
async def test_an_output(client: Client, stored: Client, with_store: bool) -> None:
    """The result of a run is read by every client, also by one without the store."""

    async def run(size: int) -> Any:
        def make(text: str) -> str:
            return text * size

        agent = Agent(Script({"final_result": {"text": "y"}}).model, name="makes", output_type=make)
        async with working(stored if with_store else client, App(agents=[agent])) as runs:
            handle = await runs.start("makes", "go")
            try:
                return len((await handle.result())["output"])
            except WorkflowFailureError as error:
                return error.cause

    assert await run(1_499_000) == 1_499_000
    failure = await run(1_500_000)
    assert failure.type == "OutputTooLarge"
    assert "may have 1500000" in failure.message


@pytest.mark.parametrize("with_store", [False, True], ids=["no store", "store"])
async def test_an_output_beside_other_calls(client: Client, stored: Client, with_store: bool) -> None:
    """It is made after the calls, by an activity of its own; neither they nor it are made again."""
    ran: list[str] = []

    def make(text: str) -> str:
        ran.append("make")
        return text * size

    def work() -> str:
        ran.append("work")
        return "ok"

    turn: list[Any] = [ToolCallPart("work", {}), ToolCallPart("final_result", {"text": "y"})]
    agent = Agent(Script(turn).model, name="makes", output_type=make, tools=[work])
    async with working(stored if with_store else client, App(agents=[agent])) as runs:
        for size in (1_499_000, 1_500_000, 9_000_000):
            handle = await runs.start("makes", "go")
            if size == 1_499_000:
                assert len((await handle.result())["output"]) == size
            else:
                failure = await failure_of(handle)
                assert failure.type == "OutputTooLarge"
                assert re.search("may have (1500000|8000000)", failure.message)
            assert await activities(handle) == ["model_request", "tool:work", "settle"]
            assert await attempts(handle) == [1, 1, 1]
    assert ran == ["work", "make"] * 3
