"""A turn or run that is ended while the model is asked ends so, also where nothing more is heard of the request."""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client

from perdure import App, DurableAgent
from tests.deciding import cancelled_soon, update
from tests.harness import until, working
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed, turn


class Deaf:
    """A model that doesn't notice a cancel, until it is let go; its later answers are a script's."""

    def __init__(self) -> None:
        self.script = Script("next")
        self.asked, self.let_go = False, asyncio.Event()

    async def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if self.asked:
            return self.script(messages, info)
        self.asked = True
        while not self.let_go.is_set():
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                continue
        raise RuntimeError("nobody hears this")

    def app(self) -> App:
        """Its request is lost after three seconds, and not made again."""
        agent = Agent(FunctionModel(self), name="deaf")
        return App(agents=[DurableAgent(agent, model_timeout=3, model_attempts=1)])


async def test_a_turn_is_interrupted_whose_request_is_lost(client: Client, cache: int) -> None:
    model = Deaf()
    async with working(client, model.app(), cache=cache) as runs:
        handle = await runs.start("deaf", "go", **SESSION)
        await until(lambda: model.asked)
        await update(handle, "interrupt", {"by": "ann"})
        ended = await turn(handle, turn=1)
        model.let_go.set()
        assert (ended["state"], ended["error"]["message"]) == ("interrupted", "the turn was interrupted by 'ann'")
        assert await answered(handle, "more") == "next"
        await closed(handle)


async def test_a_run_is_cancelled_whose_request_is_lost(client: Client, cache: int) -> None:
    model = Deaf()
    async with working(client, model.app(), cache=cache) as runs:
        handle = await runs.start("deaf", "go")
        await until(lambda: model.asked)
        await cancelled_soon(handle, 30)
        model.let_go.set()
    assert model.script.requests == [], "it isn't asked once more"
