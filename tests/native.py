"""Agents with tools that the provider runs."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, BinaryImage
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.native_tools import (
    AbstractNativeTool,
)
from pydantic_ai.profiles import ModelProfile

from perdure import App, DurableAgent
from tests.harness import Runs
from tests.namespaces import Searching, numbered

PIXEL = BinaryImage(data=b"\x89PNG\r\n\x00\xff", media_type="image/png")
EVERY = ModelProfile(supports_image_output=True)
"""The profile of a scripted model has all native tools; image output has to be said."""


def app(script: Searching, *tools: AbstractNativeTool, ran: list[str] | None = None, **durable: Any) -> App:
    """An agent with native tools and one of its own."""
    own = numbered("desk", ["look"], [] if ran is None else ran)
    agent = Agent(script.model, name="office", toolsets=[own], capabilities=[NativeTool(tool) for tool in tools])
    return App(agents=[DurableAgent(agent, **durable)])


async def failed(runs: Runs, agent: str) -> tuple[Any, Any]:
    """A run that fails, and its failure."""
    failure = await runs.failure(agent, "go")
    return runs.handles[-1], failure
