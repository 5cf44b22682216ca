"""The contract of a refund, and an agent that has it as a tool."""

from __future__ import annotations

from datetime import date
from typing import Any

from pydantic import BaseModel, Field
from pydantic_ai import Agent

from perdure import App, DurableAgent, ToolPolicy
from perdure.toolsets.contract import ToolContract
from perdure.toolsets.contract_toolset import ContractToolset
from tests.scripts import Script


class Order(BaseModel):
    order_id: str = Field(description="The order.", max_length=6)
    since: date = Field(date(2026, 1, 1), alias="from", description="The first day that counts.")
    note: str | None = Field(None, description="For whoever reads it.")


class Refund(BaseModel):
    cents: int = Field(ge=0)
    day: date


REFUND = ToolContract("refund", "Refund an order.", Order, Refund, version="1")
CALL: dict[str, Any] = {"refund": {"order_id": "A-1"}}


def shop(script: Script, toolset: ContractToolset, **policy: Any) -> App:
    """An agent with the tools of one contract toolset."""
    agent: Any = Agent(script.model, name="shop", toolsets=[toolset], retries=2)
    return App(agents=[DurableAgent(agent, policies={"refund": ToolPolicy(**policy)} if policy else {})])
