"""An app of one agent with one tool, whatever its model."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.models import Model

from perdure import App, DurableAgent


def shop(model: Model, ran: list[int] | None = None, **options: Any) -> App:
    """An app of one agent with one tool."""
    tools = FunctionToolset[None](id="shop")

    @tools.tool_plain
    def lookup(id: int) -> str:
        """Look an order up."""
        if ran is not None:
            ran.append(id)
        return f"order {id} was sent"

    return App(agents=[DurableAgent(Agent(model, name="shop", toolsets=[tools]), **options)])
