"""An agent that counts, and a run of it that waits at a limit."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ToolCallPart

from perdure import App, DurableAgent, Limits
from tests.deciding import Row, pending, update
from tests.harness import Handle
from tests.scripts import Script

ASK: dict[str, Any] = {"on_limit": "ask"}


def counter(ran: list[int], script: Script, **options: Any) -> App:
    """An agent with a tool that counts its calls."""

    def count(number: int) -> int:
        ran.append(number)
        return number

    return App(agents=[DurableAgent(Agent(script.model, name="counts", tools=[count]), **options)])


def waits(begun: list[int]) -> App:
    """An agent with a tool that doesn't end, and that says when it has begun."""

    async def wait() -> str:
        begun.append(1)
        await asyncio.Event().wait()
        return "never"

    return App(agents=[DurableAgent(Agent(Script({"wait": {}}).model, name="waits", tools=[wait]))])


def steps(number: int, calls: int = 1) -> Script:
    """A script of so many steps with so many calls each, and then an output."""
    turns = [[ToolCallPart("count", {"number": step * 10 + n}) for n in range(calls)] for step in range(number)]
    return Script(*turns, "done")  # pyright: ignore[reportArgumentType]


def most(name: str, value: Any) -> Limits:
    """Limits with this one."""
    return Limits.model_validate({name: value})


async def limit(handle: Handle, name: str) -> Row:
    """What waits, once the run waits at this limit and nothing else."""
    (row,) = await pending(handle, 1)
    assert (row["kind"], row["args"]["limit"]) == ("limit", name)
    return row


async def raised(handle: Handle, **limits: Any) -> dict[str, Any]:
    """Set limits, as any client would."""
    return await update(handle, "set_limits", {"limits": limits, "by": "ann"})
