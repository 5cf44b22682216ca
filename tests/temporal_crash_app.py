"""A worker to be killed: `python -m tests.temporal_crash_app ADDRESS QUEUE FOLDER [GRACE]`.

The prompt names the tool that is called, which others run on the queue `remote-<name of FOLDER>`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from typing_extensions import TypedDict

from perdure import App, DurableAgent
from perdure.toolsets.temporal import TemporalTools
from tests.crash_app import append, serve


class Order(TypedDict, total=False):
    sku: str
    wait: bool


async def hold(which: str) -> None:
    """Hold a parcel."""


def queue_of(folder: Path) -> str:
    """The queue of the other team."""
    return f"remote-{folder.name}"


def temporal_app(folder: Path) -> App:
    """One agent, whose first response calls the tool that the prompt names, and whose second tells what came of it."""

    def ask(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        append(folder / "asked", requests=len(messages))
        last = messages[-1]
        answered = [p for p in last.parts if isinstance(p, ToolReturnPart)] if isinstance(last, ModelRequest) else []
        if answered:
            return ModelResponse(parts=[TextPart(f"{answered[0].outcome}: {answered[0].model_response_str()}")])
        prompt = next(part.content for message in messages for part in message.parts if part.part_kind == "user-prompt")
        args = {"which": "x"} if prompt == "hold" else {"sku": "A-1", "wait": True}
        return ModelResponse(parts=[ToolCallPart(str(prompt), args, tool_call_id="c1")])

    tools = TemporalTools("others", task_queue=queue_of(folder))
    tools.activity("HoldParcel", signature=hold)
    tools.workflow("PackOrder", name="pack", description="Pack.", input_model=Order)
    return App(agents=[DurableAgent(Agent(FunctionModel(ask), name="crash", toolsets=[tools]))])


if __name__ == "__main__":
    asyncio.run(serve(temporal_app, *sys.argv[1:]))
