"""Tools of the OpenAI Agents SDK, and an agent with them."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any

from agents import (
    FunctionTool,
    RunContextWrapper,
    function_tool,
)
from agents.tool_context import ToolContext
from pydantic import BaseModel

from perdure import App, ToolPolicy
from perdure.toolsets.openai_agents import OpenAIAgentsToolset
from tests.foreign import RAN, clerk
from tests.scripts import Script


def an_app(script: Script, *tools: FunctionTool, **policies: ToolPolicy) -> App:
    """One agent with these tools."""
    return clerk(script, OpenAIAgentsToolset(tools, id="sdk"), **policies)


def slow(name: str, **options: Any) -> FunctionTool:
    """A tool that doesn't end by itself."""

    async def run() -> str:
        """Waits until it is cancelled."""
        RAN.append(name)
        await asyncio.Event().wait()
        raise AssertionError

    return function_tool(run, name_override=name, timeout=0.05, **options)


def failing(name: str, **options: Any) -> FunctionTool:
    """A tool that raises."""

    def run(key: str) -> str:
        """Fails."""
        RAN.append(name)
        raise ValueError("password hunter2")

    return function_tool(run, name_override=name, **options)


def gated(name: str, needs: Any, **options: Any) -> FunctionTool:
    """A tool that needs an approval."""

    def run(cents: int) -> str:
        """Refunds."""
        RAN.append((name, cents))
        return f"refunded {cents}"

    return function_tool(run, name_override=name, needs_approval=needs, **options)


class Address(BaseModel):
    """Where."""

    street: str


@function_tool
async def book(ctx: RunContextWrapper[dict[str, str]], day: date, to: Address, seats: int = 2) -> str:
    """Books seats.

    Args:
        day: When.
        to: Where to.
        seats: How many.
    """
    assert isinstance(ctx, ToolContext)
    RAN.append((ctx.context["user"], day, to, seats, ctx.tool_name, ctx.tool_call_id, ctx.usage.requests))
    return f"{seats} seats"
