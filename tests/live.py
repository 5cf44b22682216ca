"""What tests of live text share: a model that streams as it is told, and agents that chat with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from perdure import App, DurableAgent, ToolPolicy, progress
from perdure.toolsets.ask_user import ask_user
from tests.harness import Handle
from tests.scripts import Script


class Stammer:
    """Says `one two`, breaks off, and in the next attempt says `one two three`: held where a test wants to look."""

    def __init__(self) -> None:
        self.attempts = 0
        self.breaks = asyncio.Event()
        self.ends = asyncio.Event()

    @property
    def app(self) -> App:
        model = FunctionModel(self._whole, stream_function=self._stream)
        return App(agents=[DurableAgent(Agent(model, name="stammer"))])

    async def _whole(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart("one two three")])

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        self.attempts += 1
        yield "one "
        yield "two "
        if self.attempts == 1:
            await self.breaks.wait()
            raise ModelHTTPError(503, "stammer")
        await self.ends.wait()
        yield "three"


def holding(script: Script, release: asyncio.Event) -> App:
    """An agent that may ask its user, and whose tool `hold` says something and then waits for `release`."""
    agent = Agent(script.model, name="holder", tools=[ask_user])

    @agent.tool_plain
    async def hold() -> str:
        """Waits."""
        progress("half done")
        await release.wait()
        return "released"

    return App(agents=[DurableAgent(agent, policies={"hold": ToolPolicy(cancel_grace=0.1)})])


def heard(messages: list[ModelMessage], info: AgentInfo) -> str:
    """A turn of a script: repeats what the user has said last."""
    said = [part.content for message in messages for part in message.parts if part.part_kind == "user-prompt"]
    return f"heard {said[-1]}"


async def live(handle: Handle) -> dict[str, Any] | None:
    """What the open activity of a run says of itself: `attempt` and `text`."""
    for activity in (await handle.describe()).raw_description.pending_activities:
        if activity.heartbeat_details.payloads:
            return json.loads(activity.heartbeat_details.payloads[0].data)
    return None
