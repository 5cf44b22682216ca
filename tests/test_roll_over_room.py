"""A run that has to make room before it continues as new: what is sent to it while the summary is made."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client

from perdure import App, DurableAgent
from tests.deciding import pending, update
from tests.harness import LONG, Handle, chain, until, working
from tests.noise import noise
from tests.rolling import PAUSES
from tests.scripts import answer
from tests.sessions import SESSION, closed, send, turn

BEFORE: list[Any] = [{"read": {"n": n}} for n in range(3)]
"""1.1 MB of results, compressed: nearly all that may be taken along."""
LARGE = noise(300_000, 77)
"""With this once more as it is and once compressed, it is more."""


class Summarised:
    """An agent that reads much and then asks, or only talks, and whose summary is made when a test says so."""

    def __init__(self, *turns: Any) -> None:
        self.turns = [*BEFORE, *turns]
        self.ran: list[Any] = []
        self.requests = 0
        self.begun, self.release = asyncio.Event(), asyncio.Event()

    def app(self) -> App:
        tools = FunctionToolset[None](id="tools")

        @tools.tool_plain
        def read(n: int) -> str:
            self.ran.append(n)
            return noise(520_000, n)

        @tools.tool_plain(requires_approval=True)
        def ask(note: str) -> str:
            self.ran.append("asked")
            return "asked"

        models = {"short": FunctionModel(self.summary)}
        reads = DurableAgent(
            Agent(FunctionModel(self.model), name="reader", toolsets=[tools]), models=models, compact_with="short"
        )
        return App(agents=[reads])

    async def model(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.requests += 1
        return answer(self.turns[self.requests - 1], messages, info, self.requests - 1)

    async def summary(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.begun.set()
        await self.release.wait()
        return ModelResponse(parts=[TextPart("Three things were read.")])

    async def is_summarised(self, handle: Handle) -> None:
        """Events, until the summary is being made."""
        for pause in PAUSES * 3:
            if self.begun.is_set():
                return
            await handle.signal("nothing", {})
            await asyncio.sleep(pause)
        raise AssertionError("no room had to be made")


async def test_a_message_is_taken_while_an_idle_session_makes_room(rolling_client: Client, cache: int) -> None:
    made = Summarised(LARGE, "done", "more")
    async with working(rolling_client, made.app(), cache=cache) as runs:
        handle = await runs.start("reader", "go", timeout=LONG, **SESSION)
        await turn(handle, turn=1)
        await made.is_summarised(handle)
        async with asyncio.timeout(90):
            sent = await send(handle, "and now?")
        made.release.set()
        assert (await turn(handle, message=sent["messages"][0]))["output"]["value"] == "done"
        assert (await closed(handle))["turns"] == 2


@pytest.mark.parametrize("way", ["update", "signal"])
async def test_a_turn_that_ends_while_room_is_made_has_ended(rolling_client: Client, cache: int, way: str) -> None:
    made = Summarised([ToolCallPart("ask", {"note": LARGE})], "done", "never", "never")
    async with working(rolling_client, made.app(), cache=cache) as runs:
        handle = await runs.start("reader", "go", timeout=LONG, **SESSION)
        (row,) = await pending(handle, 1)
        await made.is_summarised(handle)
        decision = {"call": row["call"], "by": "ann"}
        async with asyncio.timeout(90):
            await (update(handle, "approve", decision) if way == "update" else handle.signal("approve", decision))
        await asked(handle, 5)
        made.release.set()
        assert (await turn(handle, turn=1))["output"]["value"] == "done"
        assert (await closed(handle))["steps"] == 5
        assert (made.ran, made.requests) == ([0, 1, 2, "asked"], 5)
        assert len(await chain(handle)) > 1


async def asked(handle: Handle, requests: int) -> None:
    """Until the answer to so many model requests is recorded."""

    async def there() -> bool:
        return (await handle.query("status"))["usage"]["requests"] == requests

    await until(there, every=0.2)
