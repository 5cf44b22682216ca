"""An agent that talks, and a run of it that is held in a tool."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent

from perdure import App
from tests.scripts import Script


def talker(*turns: Any, tools: Any = ()) -> App:
    return App(agents=[Agent(Script(*(turns or ("done",))).model, name="talks", tools=list(tools))])


class Held:
    """An app whose run is held in a tool, so that somebody can talk to it."""

    def __init__(self) -> None:
        self.begun, self.release = asyncio.Event(), asyncio.Event()

        async def hold() -> str:
            self.begun.set()
            await self.release.wait()
            return "held"

        self.app = talker({"hold": {}}, "done", tools=[hold])
