"""Rows S0 of the table in docs/tools.md that no other test proves: schemas, timeouts, state, retries, private parts."""

from __future__ import annotations

import ast
import asyncio
import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, FunctionToolset, RunContext, Tool
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from typing_extensions import override

from perdure import App, current_call
from tests.harness import activities, attempts, messages, until, working
from tests.reading import events, everything, returns
from tests.scripts import Script

PACKAGE = Path(__file__).parent.parent / "perdure"
GOLDEN = Path(__file__).parent / "data" / "tool_schemas.json"


def weather(ctx: RunContext[Any], city: str, days: int = 1, *, unit: str | None = None) -> dict[str, float]:
    """Say what the weather will be.

    Args:
        city: The name of a city.
        days: How many days ahead.
        unit: C or F.

    Returns:
        Degrees by day.
    """
    return {f"{city} {day} {unit}": 20.5 for day in range(days)}


async def test_s0_01_the_model_sees_the_schema_of_the_function_and_history_holds_none(client: Client) -> None:
    """S0-03 and S0-04 too: what is required, and the description with what it says of the result."""
    script = Script({"weather": {"days": 2}}, {"weather": {"city": "Oslo"}}, "done")
    async with working(client, App(agents=[Agent(script.model, name="golden", tools=[weather])])) as runs:
        handle = await runs.start("golden", "go")
        assert (await handle.result())["output"] == "done"
        assert await activities(handle) == ["model_request"] * 2 + ["tool:weather", "model_request"], (
            "S0-03: a call without a required argument starts no activity of the tool"
        )
        missing, good = returns(await messages(handle))
        assert (missing.outcome, good.content) == ("retried", {"Oslo 0 None": 20.5})
        assert "Degrees by day" not in await everything(handle)
    seen = [
        {"description": tool.description, "schema": tool.parameters_json_schema}
        for info in script.infos
        for tool in info.function_tools
    ]
    assert seen == [json.loads(GOLDEN.read_text())["weather"]] * 3


async def test_s0_07_a_tools_own_timeout_asks_the_model_to_try_again(client: Client) -> None:
    """A function that awaits and one that blocks a thread; the tool's time wins over its toolset's."""
    released, cancelled = threading.Event(), list[str]()

    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append("slow")
        return "never"

    def blocked() -> str:
        released.wait()
        return "too late"

    tools = FunctionToolset[Any]([Tool(slow, timeout=0.05)], id="slow", timeout=600)
    tools.add_function(blocked, timeout=0.05)
    script = Script({"slow": {}, "blocked": {}}, "done")
    async with working(client, App(agents=[Agent(script.model, name="slow", toolsets=[tools])])) as runs:
        handle = await runs.start("slow", "go")
        try:
            assert (await handle.result())["output"] == "done"
        finally:
            released.set()
        assert EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT not in await events(handle)
        assert await attempts(handle) == [1] * 4
    for part in returns(script.requests[1]):
        assert (part.outcome, "Timed out after 0.05 seconds." in part.model_response_str()) == ("retried", True)
        assert part.retry is not None
        assert part.retry.attempt == 1
    assert cancelled == ["slow"]


@dataclass
class PerRun(WrapperToolset[Any]):
    """Counts its calls, anew wherever Pydantic AI says that a run begins."""

    opened: list[str | None] = field(default_factory=list[str | None])
    calls: int = 0

    @override
    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        self.opened.append(ctx.run_id)
        return PerRun(self.wrapped, self.opened)

    @override
    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> int:
        await super().call_tool(name, tool_args, ctx, tool)
        self.calls += 1
        return self.calls


async def test_s0_10_runs_at_once_share_no_state_of_a_toolset(client: Client, cache: int) -> None:
    """`for_run` is asked once an activity, not once a run: a toolset that counts begins at zero for each call."""
    inside: set[str] = set()

    async def meet() -> None:
        inside.add(current_call().workflow_id)
        await until(lambda: len(inside) == 2)

    toolset = PerRun(FunctionToolset[Any]([meet], id="meet"))
    script = Script({"meet": {}}, {"meet": {}}, "done")
    async with working(client, App(agents=[Agent(script.model, name="meet", toolsets=[toolset])]), cache=cache) as runs:
        handles = [await runs.start("meet", "go") for _ in range(2)]
        for handle in handles:
            assert (await handle.result())["output"] == "done"
            assert [part.content for part in returns(await messages(handle))] == [1, 1]
    assert toolset.calls == 0
    assert sorted(toolset.opened.count(run) for run in set(toolset.opened)) == [5, 5]


def test_s0_13_nothing_private_of_pydantic_ai_is_imported() -> None:
    found: list[str] = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                found += [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                found += [alias.name for alias in node.names]
    own = [name for name in found if name.startswith("pydantic_ai.")]
    assert own
    assert not [name for name in own if any(part.startswith("_") for part in name.split("."))]
