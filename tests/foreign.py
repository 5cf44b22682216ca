"""What tests of the adapters share: an agent with foreign tools, and what its calls were answered with."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.toolsets import AbstractToolset
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy
from tests.deciding import answers
from tests.harness import Handle, working
from tests.scripts import Script

RAN: list[Any] = []
"""What the tools did; each test begins with none."""
ANN = {"user": "ann"}
"""The params of a run, which are its deps."""


def clerk(script: Script, toolset: AbstractToolset[Any], **policies: ToolPolicy) -> App:
    """One agent with these tools."""
    agent = Agent(script.model, name="clerk", deps_type=dict[str, str], toolsets=[toolset], retries=20)
    return App(agents=[DurableAgent(agent, params_type=dict[str, str], policies=policies, max_parallel_calls=20)])


async def told(client: Client, app: App, cache: int = 1000) -> tuple[list[tuple[str, str]], Handle]:
    """What the calls of a run were answered with, in order; and the run, which has ended."""
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        await handle.result()
        return list((await answers(handle)).values()), handle
