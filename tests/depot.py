"""An agent whose tools are activities of others that can be made to fail, and one tool of its own that ends the run."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset
from temporalio.exceptions import ApplicationError

from perdure import App, DurableAgent, ToolPolicy
from perdure.toolsets.temporal import TemporalTools
from tests.scripts import Script


class Quote(BaseModel):
    cents: int


async def which(which: str) -> None:
    """Anything."""


async def reserve(order: dict[str, Any]) -> None:
    """Reserve."""


def depot(queue: str, script: Script, policies: dict[str, ToolPolicy] | None = None, **options: Any) -> App:
    """An agent with the activities that can be made to fail, and one tool of its own that ends the run."""
    tools = TemporalTools("depot", task_queue=queue)
    tools.activity("ReserveStock", name="reserve", signature=reserve, **options)
    tools.activity("HoldParcel", name="hold", signature=which)
    tools.activity("HoldParcel", name="beat", signature=which, heartbeats=True)
    tools.activity("Answer", name="answer", signature=which, **options)
    tools.activity("Nowhere", name="nowhere", signature=which)
    own = FunctionToolset[object](id="own")

    @own.tool_plain
    def ends() -> None:
        """Ends the run."""
        raise ApplicationError("over", type="Over", non_retryable=True)

    agent = Agent(script.model, name="depot", toolsets=[tools, own])
    return App(agents=[DurableAgent(agent, policies=policies or {})])
