"""An agent that asks the simulator, by Pydantic AI's own OpenAI adapter."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.run import AgentRunResult

both_ways = pytest.mark.parametrize("streaming", [False, True], ids=["plain", "streaming"])

tools = FunctionToolset(id="tools")


@tools.tool_plain
def double(x: int) -> int:
    return 2 * x


agent = Agent(toolsets=[tools])


async def run(model: OpenAIChatModel, streaming: bool) -> AgentRunResult[str]:
    if not streaming:
        return await agent.run("go", model=model)
    async with agent.run_stream_events("go", model=model) as events:
        async for _ in events:
            pass
    assert events.result is not None
    return events.result


def returns(result: AgentRunResult[str]) -> list[tuple[str, Any]]:
    parts = [part for message in result.all_messages() for part in message.parts]
    return [(part.outcome, part.content) for part in parts if isinstance(part, ToolReturnPart)]
