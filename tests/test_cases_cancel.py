"""Cases K1 and M1: cancellation at each await point, and live text under retry."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client
from temporalio.exceptions import CancelledError

from perdure import App, DurableAgent, ToolPolicy, progress
from tests.deciding import cancelled_soon
from tests.harness import Handle, activities, messages, until, working
from tests.live import live
from tests.scripts import Script


async def last_outcomes(handle: Handle) -> list[str]:
    """The kinds of the outcomes of a run's last step."""
    page = await handle.query("transcript")
    return [row["kind"] for row in page["entries"][-1].get("outcomes", [])]


@pytest.mark.parametrize("absorbs", [False, True], ids=["cooperates", "absorbs"])
async def test_case_k1_cancelled_during_a_model_request(client: Client, cache: int, absorbs: bool) -> None:
    asked = asyncio.Event()

    async def ask(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not absorbs:
                raise
        return ModelResponse(parts=[TextPart("an answer nobody waits for")])

    async with working(client, App(agents=[Agent(FunctionModel(ask), name="slow")]), cache=cache) as runs:
        handle = await runs.start("slow", "go")
        await asyncio.wait_for(asked.wait(), 20)
        await cancelled_soon(handle)
        assert (await handle.query("status"))["state"] == "done"


@pytest.mark.parametrize("effect", ["unsafe", "safe"])
@pytest.mark.parametrize("absorbs", [False, True], ids=["cooperates", "absorbs"])
async def test_case_k1_cancelled_during_a_tool(client: Client, cache: int, effect: Any, absorbs: bool) -> None:
    begun = asyncio.Event()

    async def work() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not absorbs:
                raise
        return "done all the same"

    agent = Agent(Script({"work": {}}).model, name="works", tools=[work])
    app = App(agents=[DurableAgent(agent, policies={"work": ToolPolicy(effect=effect)})])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("works", "go")
        await asyncio.wait_for(begun.wait(), 20)
        await cancelled_soon(handle)
        (kind,) = await last_outcomes(handle)
    told = "returned" if absorbs else "cancelled"
    honest = {told, "unknown"} if effect == "unsafe" else {told, "cancelled"}
    assert kind in honest, "an effect may be done: don't deny it"


@pytest.mark.parametrize(("effect", "outcome"), [("unsafe", "unknown"), ("safe", "cancelled")])
@pytest.mark.parametrize("thread", [False, True], ids=["coroutine", "thread"])
async def test_case_k1_a_tool_that_ignores_the_cancel_is_given_up(
    client: Client, cache: int, effect: Any, outcome: str, thread: bool
) -> None:
    begun, release = threading.Event(), threading.Event()

    async def stubborn() -> str:
        begun.set()
        while not release.is_set():
            try:
                await until(release.is_set)
            except asyncio.CancelledError:
                continue
        return "late"

    def blocking() -> str:
        begun.set()
        release.wait(20)
        return "late"

    tool = blocking if thread else stubborn
    agent = Agent(Script({tool.__name__: {}}).model, name="works", tools=[tool])
    app = App(agents=[DurableAgent(agent, policies={tool.__name__: ToolPolicy(effect=effect, cancel_grace=0.3)})])
    async with working(client, app, cache=cache) as runs:
        try:
            handle = await runs.start("works", "go")
            await until(begun.is_set)
            await cancelled_soon(handle)
            assert await last_outcomes(handle) == [outcome]
        finally:
            release.set()


async def test_case_k1_cancelled_before_any_worker_has_seen_the_run(client: Client, cache: int) -> None:
    async with working(client, App(agents=[Agent(Script("done").model, name="first")]), check=False) as runs:
        pass
    handle = await runs.start("first", "go")
    await handle.cancel()
    app = App(agents=[Agent(Script("done").model, name="first")])
    async with working(client, app, cache=cache, task_queue=runs.task_queue) as again:
        again.handles.append(handle)
        await cancelled_soon(handle)
        assert await activities(handle) == []


async def test_case_k1_calls_that_wait_for_a_slot_never_begin(client: Client, cache: int) -> None:
    begun: list[int] = []

    async def work(number: int) -> str:
        begun.append(number)
        await asyncio.Event().wait()
        return "never"

    script = Script([ToolCallPart("work", {"number": number}) for number in range(6)])
    app = App(agents=[DurableAgent(Agent(script.model, name="works", tools=[work]), max_parallel_calls=2)])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("works", "go")
        await until(lambda: len(begun) == 2)
        await cancelled_soon(handle)
        answers = [part for part in (await messages(handle))[-1].parts if isinstance(part, ToolReturnPart)]
        assert ["never began" in part.model_response_str() for part in answers] == [False] * 2 + [True] * 4
    assert sorted(begun) == [0, 1]


async def test_case_k1_cancelled_after_twenty_random_delays(client: Client, cache: int) -> None:
    """Whatever the cancel hits, the run ends canceled, or had already ended; `working` checks what is left."""
    rng = random.Random(7)

    async def work(number: int) -> str:
        return f"worked {number}"

    script = Script(*[{"work": {"number": number}} for number in range(12)], "done")
    async with working(client, App(agents=[Agent(script.model, name="works", tools=[work])]), cache=cache) as runs:
        ended: list[str] = []
        for _ in range(20):
            handle = await runs.start("works", "go")
            result = asyncio.ensure_future(handle.result())
            await asyncio.wait([result], timeout=rng.uniform(0, 0.6))
            await handle.cancel()
            async with asyncio.timeout(5):
                outcome = await asyncio.gather(result, return_exceptions=True)
            cause = getattr(outcome[0], "cause", None)
            assert result.exception() is None or isinstance(cause, CancelledError), outcome
            ended.append("canceled" if result.exception() else "completed")
    assert ended.count("canceled") >= 10


async def test_case_m1_a_reader_never_shows_the_text_of_a_failed_attempt(client: Client, cache: int) -> None:
    shown: list[dict[str, Any]] = []
    words = {1: ["The ", "wrong ", "start"], 2: ["The ", "final ", "text"]}
    may_go_on = {1: asyncio.Event(), 2: asyncio.Event()}
    attempts: list[int] = []

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        attempts.append(len(attempts) + 1)
        attempt = attempts[-1]
        for word in words[attempt]:
            yield word
        await may_go_on[attempt].wait()
        if attempt == 1:
            raise ModelHTTPError(503, "busy")

    agent = Agent(FunctionModel(stream_function=stream), name="writes")
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        handle = await runs.start("writes", "go")

        async def see(attempt: int) -> bool:
            if (now := await live(handle)) is not None and now not in shown:
                shown.append(now)
            return {"attempt": attempt, "text": "".join(words[attempt])} in shown

        for attempt in (1, 2):
            await until(lambda attempt=attempt: see(attempt))
            may_go_on[attempt].set()
        assert (await handle.result())["output"] == "The final text"
    for row in shown:
        assert "".join(words[row["attempt"]]).startswith(row["text"])


@pytest.mark.parametrize("thread", [False, True], ids=["coroutine", "thread"])
async def test_case_m1_the_progress_of_a_tool_is_visible_while_it_runs(
    client: Client, cache: int, thread: bool
) -> None:
    release = threading.Event()

    async def counts() -> str:
        progress("3 of 7 pages")
        await until(release.is_set)
        return "7 pages"

    def counts_in_thread() -> str:
        progress("3 of 7 pages")
        release.wait(20)
        return "7 pages"

    tool = counts_in_thread if thread else counts
    script = Script({tool.__name__: {}}, "done")
    async with working(client, App(agents=[Agent(script.model, name="counts", tools=[tool])]), cache=cache) as runs:
        handle = await runs.start("counts", "go")

        async def visible() -> bool:
            return await live(handle) == {"attempt": 1, "text": "3 of 7 pages"}

        await until(visible)
        before = (await handle.describe()).history_length
        release.set()
        await handle.result()
        assert before < (await handle.describe()).history_length
