"""Tools of smolagents, and an agent with them."""

from __future__ import annotations

import threading
from typing import Any

from smolagents.tools import Tool, tool  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from perdure import App, ToolPolicy
from perdure.toolsets.smolagents import SmolagentsToolset
from tests.foreign import RAN, clerk
from tests.scripts import Script


@tool
def weather(city: str, day: str | None = None) -> dict[str, Any]:
    """The weather in a city.

    Args:
        city: Its name.
        day: A day of the week; left out, today.
    """
    RAN.append((city, day, threading.current_thread() is threading.main_thread()))
    return {"city": city, "celsius": 4}


class Lookup(Tool):
    """With every type that a model can write, and a `setup()` that forgets `is_initialized`."""

    name = "lookup"
    description = "Looks something up."
    inputs: dict[str, Any] = {
        "key": {"type": "string", "description": "The key."},
        "count": {"type": "integer", "description": "How many.", "nullable": True},
        "ratio": {"type": "number", "description": "A ratio.", "nullable": True},
        "strict": {"type": "boolean", "description": "Strictly?", "nullable": True},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Tags.", "nullable": True},
        "options": {"type": "object", "description": "Options.", "nullable": True},
        "extra": {"type": "any", "description": "Anything.", "nullable": True},
        "either": {"type": ["integer", "string"], "description": "One of two.", "nullable": True},
    }
    output_type = "object"
    output_schema = {"type": "object", "properties": {"value": {"type": "integer"}}}

    def __init__(self, faults: int = 0) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.faults = faults

    def setup(self) -> None:
        RAN.append("setup")
        if len(RAN) <= self.faults:
            raise OSError("secret of the setup")

    def forward(
        self,
        key: str,
        count: int | None = None,
        ratio: float | None = None,
        strict: bool | None = None,
        tags: list[str] | None = None,
        options: dict[str, Any] | None = None,
        extra: Any | None = None,
        either: int | str | None = None,
    ) -> dict[str, Any]:
        RAN.append(key)
        return {"value": 7}


def an_app(script: Script, *tools: Tool, **policies: ToolPolicy) -> App:
    """One agent with these tools."""
    return clerk(script, SmolagentsToolset(tools, id="smol"), **policies)


class Counts(Tool):
    """Returns a number as text, as smolagents does; `limit` has no default, and an argument is called `ctx`."""

    name = "counts"
    description = "Counts."
    inputs = {
        "ctx": {"type": "integer", "description": "How far."},
        "limit": {"type": "integer", "description": "The most.", "nullable": True},
    }
    output_type = "string"

    def forward(self, ctx: int, limit: int | None) -> Any:
        return ctx if limit is None else min(ctx, limit)
