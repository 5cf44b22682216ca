"""Rows S0 of the table in docs/tools.md about toolsets and what wraps them: names, routes, gates, conflicts."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

import pytest
from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, DynamicToolset, ToolsetTool, WrapperToolset
from temporalio.client import Client
from typing_extensions import override

from perdure import App
from tests.deciding import answers, pending, update
from tests.harness import activities, attempts, failure_of, until, working
from tests.scripts import Script


@dataclass
class Leaf(WrapperToolset[Any]):
    """Notes what reaches it."""

    saw: list[Any] = field(default_factory=list[Any])

    @override
    async def __aenter__(self) -> Self:
        self.saw.append("opened")
        return await super().__aenter__()

    @override
    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        self.saw.append("for_run")
        return await super().for_run(ctx)

    @override
    async def for_run_step(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        self.saw.append("for_run_step")
        return await super().for_run_step(ctx)

    @override
    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        self.saw.append("get_tools")
        return await super().get_tools(ctx)

    @override
    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        self.saw.append((name, tool_args))
        return await super().call_tool(name, tool_args, ctx, tool)

    @property
    def calls(self) -> list[Any]:
        return [row for row in self.saw if not isinstance(row, str)]


def numbers(id: str) -> FunctionToolset[Any]:
    """Two tools: `one` and `add`."""
    tools = FunctionToolset[Any](id=id)

    @tools.tool_plain
    def one() -> int:
        """One."""
        return 1

    @tools.tool_plain
    def add(a: int, b: int = 0) -> int:
        """Add."""
        return a + b

    return tools


def large(_ctx: RunContext[Any], _definition: ToolDefinition, args: dict[str, Any]) -> bool:
    return args.get("a", 0) > 10


def not_hidden(_ctx: RunContext[Any], definition: ToolDefinition) -> bool:
    return definition.name != "hidden"


async def test_s0_22_a_chain_of_wrappers_runs_the_right_tool_under_its_own_name(client: Client, cache: int) -> None:
    """Also S0-14 (combined), S0-15 (prefixed), S0-16 (renamed), S0-19 (gated by its arguments), S1-16."""
    with_hidden = numbers("right")
    with_hidden.add_function(lambda: 0, name="hidden")
    left, right = Leaf(numbers("left")), Leaf(with_hidden)
    chain = right.filtered(not_hidden).renamed({"uno": "one"}).prefixed("r").approval_required(large)
    turn: Any = [
        ToolCallPart(name, args)
        for name, args in [("l_one", {}), ("r_uno", {}), ("r_add", {"a": 5}), ("r_add", {"a": 50})]
    ]
    script = Script(turn, "done")
    agent = Agent(script.model, name="chain", toolsets=[CombinedToolset([left.prefixed("l"), chain])])
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        handle = await runs.start("chain", "go")
        (row,) = await pending(handle, 1)
        assert (row["tool"], row["args"]) == ("r_add", {"a": 50, "b": 0})
        await until(lambda: len(left.calls) == 1 and len(right.calls) == 2)
        assert left.calls == [("one", {})]
        assert sorted(right.calls, key=str) == [("add", {"a": 5, "b": 0}), ("one", {})], "the body didn't run"
        await update(handle, "approve", {"call": row["call"]})
        assert (await handle.result())["output"] == "done"
        ran = await activities(handle)
        assert [text for _, text in (await answers(handle)).values()] == ["1", "1", "5", "50"]
    tools = ["tool:l_one", "tool:r_add", "tool:r_add", "tool:r_add", "tool:r_uno"]
    assert sorted(ran) == ["model_request"] * 2 + tools, "the gate is in the tool's activity: it asks, then it runs"
    assert right.calls[-1] == ("add", {"a": 50, "b": 0})
    assert [tool.name for tool in script.infos[0].function_tools] == ["l_one", "l_add", "r_uno", "r_add"]


def adds(_ctx: RunContext[Any], definitions: list[ToolDefinition]) -> list[ToolDefinition]:
    return [*definitions, replace(definitions[0], name="more")]


def late(id: str) -> AbstractToolset[Any]:
    """Tools that nobody knows before the run."""

    def choose(_ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return numbers(id)

    return DynamicToolset(choose, id=f"late-{id}")


CONFLICTS: dict[str, tuple[Callable[[], list[AbstractToolset[Any]]], str]] = {
    "s0_16_to_a_later_name": (lambda: [late("a").renamed({"add": "one"})], "conflicts with previously renamed tool"),
    "s0_16_to_an_earlier_name": (lambda: [late("a").renamed({"one": "add"})], "Renaming tool 'add' to 'one' conflicts"),
    "s0_18_prepared": (lambda: [late("a").prepared(adds)], "cannot add or rename tools"),
    "s0_23_same_name": (lambda: [late("a"), late("b")], "whose name conflicts with existing tool from"),
    "s0_23_prefixed": (lambda: [late("a").prefixed("p"), late("b").prefixed("p")], "Change the `prefix` attribute"),
}


@pytest.mark.parametrize("name", CONFLICTS)
async def test_s0_23_names_that_conflict_end_the_run_before_the_model_is_asked(client: Client, name: str) -> None:
    """Also S0-16 and S0-18. Tools that are known without a run are refused earlier, by the App."""
    build, message = CONFLICTS[name]
    script = Script("never")
    async with working(client, App(agents=[Agent(script.model, name="conflict", toolsets=build())])) as runs:
        handle = await runs.start("conflict", "go")
        failure = await failure_of(handle)
        assert await attempts(handle) == [1]
    assert (failure.type, failure.non_retryable) == ("UserError", True)
    assert message in failure.message
    assert not script.requests


async def test_s0_17_a_predicate_may_look_at_anything_and_the_run_replays(client: Client, cache: int) -> None:
    """It runs in activities: once for each model request and once for each call."""
    asked: list[int] = []

    def choose(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
        asked.append(ctx.run_step)
        return definition.name == "one" or (random.random() < 2 and datetime.now().year > 0)

    async def choose_later(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
        return choose(ctx, definition)

    toolsets = [numbers("a").filtered(choose), numbers("b").prefixed("b").filtered(choose_later)]
    script = Script({"one": {}}, {"b_add": {"a": 1}}, "done")
    async with working(
        client, App(agents=[Agent(script.model, name="filters", toolsets=toolsets)]), cache=cache
    ) as runs:
        handle = await runs.start("filters", "go")
        assert (await handle.result())["output"] == "done"
        assert await answers(handle) == {"c0.0": ("success", "1"), "c1.0": ("success", "1")}
    assert [asked.count(step) for step in (1, 2, 3)] == [8, 8, 4], "four tools: at the request and at its call"


async def test_s0_20_a_wrapper_without_overrides_is_transparent(client: Client) -> None:
    leaf = Leaf(numbers("leaf"))
    wrapped = WrapperToolset[Any](leaf)
    assert (wrapped.id, wrapped.label) == (None, f"WrapperToolset({leaf.label})")
    found: list[AbstractToolset[Any]] = []
    wrapped.apply(found.append)
    swapped = wrapped.visit_and_replace(lambda toolset: toolset.prefixed("p"))
    assert found == [leaf.wrapped]
    script = Script({"one": {}}, "done")
    assert type(swapped) is WrapperToolset
    async with working(client, App(agents=[Agent(script.model, name="bare", toolsets=[wrapped])])) as runs:
        assert (await runs.run("bare", "go"))["output"] == "done"
    assert leaf.saw[0] == "opened", "once a worker, before any run"
    assert leaf.calls == [("one", {})]
    assert [leaf.saw.count(name) for name in ("opened", "for_run")] == [1 + 3, 3]
    assert all(leaf.saw.count(name) >= 3 for name in ("for_run_step", "get_tools"))
