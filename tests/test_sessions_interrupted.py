"""Sessions that are interrupted or cancelled: what is kept, what is told, what runs no more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client

from perdure import App
from perdure.workflows.waiting import SUPERSEDED
from tests.deciding import answers, cancelled, pending, refused, update
from tests.gate import Gate
from tests.harness import until, working
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed, send, turn
from tests.shop import shop


async def test_interrupting_an_answer_keeps_its_text_and_marks_it(client: Client, cache: int) -> None:
    gate = Gate()
    async with working(client, gate.app(), cache=cache) as runs:
        handle = await runs.start("gate", "write", **SESSION)
        await until(lambda: len(gate.said) == 3)
        assert await update(handle, "interrupt", {"by": "ann", "reason": "too long"}) == {"state": "running"}
        ended = await turn(handle, turn=1)
        assert (ended["state"], ended["error"]["message"]) == (
            "interrupted",
            "the turn was interrupted by 'ann': too long",
        )
        assert ended["usage"]["details"] == {"interrupted_requests": 1}
        assert await answered(handle, "next") == "answered 2"
        first, partial, second = gate.requests[1]
        assert [part.part_kind for part in first.parts] == ["system-prompt", "user-prompt"]
        assert isinstance(partial, ModelResponse)
        assert (partial.text, partial.state) == ("one two three ", "interrupted")
        assert [part.part_kind for part in second.parts] == ["user-prompt"]
        await closed(handle)


async def test_interrupting_before_the_first_word_keeps_the_system_prompt(client: Client) -> None:
    script = Script("done")
    started = asyncio.Event()

    async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if not started.is_set():
            started.set()
            await asyncio.sleep(60)
        return script(messages, info)

    agent = Agent(FunctionModel(model), name="slow", system_prompt="You are slow.")
    async with working(client, App(agents=[agent])) as runs:
        handle = await runs.start("slow", "one", **SESSION)
        await started.wait()
        sent = await send(handle, "two", when_busy="interrupt")
        assert (await turn(handle, message=sent["messages"][0]))["output"]["value"] == "done"
        assert (await turn(handle, turn=1))["state"] == "interrupted"
        (request,) = script.requests[0]
        assert [getattr(part, "content", None) for part in request.parts] == ["You are slow.", ["one", "two"]]
        await closed(handle)


@pytest.mark.parametrize(("effect", "kind"), [("unsafe", "interrupted"), ("safe", "interrupted")])
async def test_interrupting_waits_for_tools_and_supersedes_what_waits(
    client: Client, cache: int, effect: str, kind: str
) -> None:
    gate = Gate()
    async with working(client, gate.app(effect=effect), cache=cache) as runs:
        handle = await runs.start("gate", "work", **SESSION)
        (row,) = await pending(handle, 1)
        await until(lambda: gate.ran == ["began 1"])
        sent = await send(handle, "something else", when_busy="interrupt", by="ann")
        assert (await turn(handle, message=sent["messages"][0]))["output"]["value"] == "answered 2"
        given = await answers(handle)
        assert given["w1"][0] == kind
        assert given["r2"] == ("denied", SUPERSEDED)
        assert gate.ran == ["began 1"]
        assert "already decided: superseded" in await refused(handle, "approve", {"call": row["call"], "by": "bob"})
        assert "another message by 'ann'" in (await turn(handle, turn=1))["error"]["message"]
        assert [one["event"] for one in await handle.query("audit")] == ["asked", "superseded", "refused"]
        await closed(handle)


async def test_case_c2_a_message_that_interrupts_denies_what_waits(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "hello")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go", **SESSION)
        await pending(handle, 1)
        assert await answered(handle, "never mind", when_busy="interrupt") == "hello"
        assert await pending(handle, 0) == []
        assert await answers(handle) == {"c0.0": ("denied", SUPERSEDED)}
        assert ran == []
        await closed(handle)


async def test_cancelling_a_session_ends_it_with_every_call_answered(client: Client, cache: int) -> None:
    gate = Gate()
    async with working(client, gate.app(), cache=cache) as runs:
        handle = await runs.start("gate", "work", **SESSION)
        await pending(handle, 1)
        await until(lambda: gate.ran == ["began 1"])
        await cancelled(handle)
        assert {id: kind for id, (kind, _) in (await answers(handle)).items()} == {
            "w1": "interrupted",
            "r2": "interrupted",
        }
    async with working(client, gate.app(), cache=cache) as runs:
        idle = await runs.start("gate", **SESSION)
        await until(lambda: idle.query("status"))
        await cancelled(idle)


async def test_a_cancelled_session_says_what_became_of_its_messages(client: Client, cache: int) -> None:
    gate = Gate()
    async with working(client, gate.app(), cache=cache) as runs:
        handle = await runs.start("gate", "work", **SESSION)
        await until(lambda: gate.ran == ["began 1"])
        await send(handle, "never", id="never")
        await cancelled(handle)
        assert (await handle.query("turn", {"turn": 1}))["error"]["type"] == "Cancelled"
        late = await handle.query("turn", {"message": "never"})
        assert (late["state"], late["error"]["type"]) == ("failed", "RunClosed")
