"""Cases C2, F1 and M1 in sessions, each in the three ways of `tests.benches`. K1: `test_cases_sessions_cancel`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client

from perdure import App, DurableAgent, Limits
from perdure.client import PerdureClient
from perdure.workflows.waiting import SUPERSEDED
from tests.benches import Way, any_way, bench
from tests.deciding import answers, pending, update
from tests.harness import Handle, chain, until
from tests.live import live
from tests.rolling import events, pushed, run_ids
from tests.scripts import Script
from tests.sessions import closed, idle, send, turn, user_texts
from tests.shop import shop

way = any_way


@pytest.mark.parametrize("allowed", [True, False])
async def test_case_c2_a_message_is_queued_while_a_call_waits(
    client: Client, rolling_client: Client, way: Way, allowed: bool
) -> None:
    found: list[Any] = []
    for server, rolls in ((client, False), (rolling_client, True)):
        ran: list[Any] = []
        script = Script({"refund": {"n": 1}}, "decided", "hello")
        async with bench(server, lambda s=script, r=ran: shop(s, r), way) as here:
            handle = await here.start("shop", "go")
            (row,) = await pending(handle, 1)
            await here.pause()
            assert (await send(handle, "are you there?", id="m"))["state"] == "queued"
            await pushed(handle, rolls)
            await here.pause()
            assert [one["call"] for one in await pending(handle, 1)] == [row["call"]]
            assert ran == []
            await update(handle, "approve" if allowed else "deny", {"call": row["call"], "by": "ann"})
            assert (await turn(handle, message="m"))["output"]["value"] == "hello"
            await here.pause()
            assert ran == [("refund", 1)] * allowed
            assert await user_texts(handle) == ["go", "are you there?"]
            assert len(script.requests) == 3
            given = await answers(handle)
            assert (await closed(handle))["turns"] == 2
            assert (len(await chain(handle)) > 1) == rolls
            found.append(given)
    assert found[0] == found[1]


async def test_case_c2_a_message_that_interrupts_denies_what_waits(
    client: Client, rolling_client: Client, way: Way
) -> None:
    for server, rolls in ((client, False), (rolling_client, True)):
        ran: list[Any] = []
        script = Script({"refund": {"n": 1}}, "hello")
        async with bench(server, lambda s=script, r=ran: shop(s, r), way) as here:
            handle = await here.start("shop", "go")
            await pending(handle, 1)
            await pushed(handle, rolls)
            await here.pause()
            await send(handle, "never mind", id="m", when_busy="interrupt")
            assert (await turn(handle, message="m"))["output"]["value"] == "hello"
            assert await answers(handle) == {"c0.0": ("denied", SUPERSEDED)}
            assert (ran, await pending(handle, 0)) == ([], [])
            await here.pause()
            assert (await closed(handle))["turns"] == 2


KILOBYTES = "x" * 5_000


def reads(script: Script, ran: list[int]) -> App:
    """A tool with an answer of 5 kB."""
    tools = FunctionToolset[None](id="tools")

    @tools.tool_plain
    def read(n: int) -> str:
        ran.append(n)
        return f"{n} {KILOBYTES}"

    make: Any = Agent
    return App(agents=[DurableAgent(make(script.model, name="reads", toolsets=[tools]), limits=Limits(requests=None))])


async def sizes(handle: Handle) -> list[int]:
    """Bytes of the history of each run of the chain, in order."""
    return [sum(event.ByteSize() for event in history.events) for history in reversed(await chain(handle))]


async def said(handle: Handle, client: Client, content: str, id: str) -> Any:
    """The answer to a message, looked for only where something has changed: the history is long."""
    run = PerdureClient(client).run(handle.id)
    await run.send(content, id=id)
    output = (await run.wait_turn(message=id)).output
    return output and output.value


async def test_case_f1_history_grows_linearly_with_the_turns(client: Client, way: Way) -> None:
    """Six turns with three calls each: a turn among the last three doesn't write more than one before."""
    turns = [[{"read": {"n": 3 * t + c}} for c in range(3)] for t in range(6)]
    script = Script(*(step for t, calls in enumerate(turns) for step in [*calls, f"answer {t}"]))
    ran: list[int] = []
    async with bench(client, lambda: reads(script, ran), way) as here:
        handle = await here.start("reads")
        size: list[int] = []
        for t in range(6):
            assert await said(handle, here.client, f"turn {t}", f"m{t}") == f"answer {t}"
            if t in (0, 2, 5):
                await idle(handle)
                await here.pause()
                size.append(sum(await sizes(handle)))
        assert ran == list(range(18))
        first, second = size[1] - size[0], size[2] - size[1]
        assert second < first * 3 / 2 * 1.15, size
        assert (await closed(handle))["output"] == "answer 5"


async def test_case_f1_what_is_carried_is_all_that_a_roll_over_adds(rolling_client: Client, way: Way) -> None:
    """The same where the run rolls over all the time: nothing is lost, and no run of the chain is large."""
    script = Script(*(step for t in range(10) for step in ({"read": {"n": t}}, f"answer {t}")))
    ran: list[int] = []
    async with bench(rolling_client, lambda: reads(script, ran), way) as here:
        handle = await here.start("reads")
        for t in range(10):
            assert await said(handle, here.client, f"turn {t}", f"m{t}") == f"answer {t}"
            if t % 5 == 2:
                await here.pause()
        assert ran == list(range(10))
        assert await user_texts(handle) == [f"turn {t}" for t in range(10)]
        assert (await closed(handle))["output"] == "answer 9"
        found = await sizes(handle)
        assert len(found) > 4
        assert max(found) < 150_000, "the carry is compressed, and the rest is of a few turns"


async def test_case_m1_live_text_across_roll_overs(client: Client, rolling_client: Client, way: Way) -> None:
    """In each of several turns a first attempt fails: a reader never shows its text together with the second's."""
    words = {1: ["The ", "wrong ", "start"], 2: ["The ", "final ", "text"]}
    for server, rolls in ((client, False), (rolling_client, True)):
        gates: dict[tuple[int, int], asyncio.Event] = {}
        attempts: list[tuple[int, int]] = []

        async def stream(
            messages: list[ModelMessage], info: AgentInfo, attempts: Any = attempts, gates: Any = gates
        ) -> AsyncIterator[str]:
            done = sum(isinstance(message, ModelResponse) for message in messages)
            attempt = 1 + sum(number == done for number, _ in attempts)
            attempts.append((done, attempt))
            for word in words[attempt]:
                yield word
            await gates.setdefault((done, attempt), asyncio.Event()).wait()
            if attempt == 1:
                raise ModelHTTPError(503, "busy")

        def app(stream: Any = stream) -> App:
            return App(agents=[Agent(FunctionModel(stream_function=stream), name="writes")])

        async with bench(server, app, way) as here:
            handle = await here.start("writes")
            for number in range(3):
                await send(handle, f"turn {number}", id=f"m{number}")
                shown: list[dict[str, Any]] = []
                for attempt in (1, 2):
                    whole = {"attempt": attempt, "text": "".join(words[attempt])}

                    async def seen(whole: Any = whole, shown: Any = shown, handle: Any = handle) -> bool:
                        if (now := await live(handle)) is not None and now not in shown:
                            shown.append(now)
                        return whole in shown

                    await until(seen)
                    gates[number, attempt].set()
                ended = await turn(handle, message=f"m{number}")
                assert ended["output"]["value"] == "The final text"
                for row in shown:
                    assert "".join(words[row["attempt"]]).startswith(row["text"]), json.dumps(shown)
                if rolls:
                    await events(handle, await run_ids(handle))  # unless it has just continued by itself
                await here.pause()
            assert attempts == [(number, attempt) for number in range(3) for attempt in (1, 2)]
            await closed(handle)
            assert (len(await chain(handle)) >= 3) == rolls
