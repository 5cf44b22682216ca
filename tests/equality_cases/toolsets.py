"""Toolsets and their wrappers: S0-10 to S0-23, S1-13 to S1-16."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    DynamicToolset,
    FilteredToolset,
    IncludeReturnSchemasToolset,
    PrefixedToolset,
    PreparedToolset,
    RenamedToolset,
    SetMetadataToolset,
    ToolsetTool,
    WrapperToolset,
)

from tests.equality_cases.base import Case, case, simple
from tests.scripts import Turn


def numbers(id: str = "numbers") -> FunctionToolset[Any]:
    """Two tools: `one` and `add`."""
    tools = FunctionToolset[Any](id=id)

    @tools.tool_plain
    def one() -> int:
        """One."""
        return 1

    @tools.tool_plain
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    return tools


@case
def s0_15_prefixed() -> Case:
    return simple(
        {"n_one": {}}, {"one": {}}, {"n_add": {"a": 1, "b": 2}}, "done", toolsets=[PrefixedToolset(numbers(), "n")]
    )


@case
def s0_16_renamed() -> Case:
    return simple({"uno": {}}, {"one": {}}, "done", toolsets=[RenamedToolset(numbers(), {"uno": "one"})])


@case
def s0_17_filtered_sync_by_step() -> Case:
    def late(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
        return definition.name == "one" or ctx.run_step > 1

    return simple({"one": {}}, {"add": {"a": 1, "b": 2}}, "done", toolsets=[FilteredToolset(numbers(), late)])


@case
def s0_17_filtered_async_by_deps() -> Case:
    async def allowed(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
        return definition.name in ctx.deps

    return simple(
        {"one": {}},
        {"add": {"a": 1, "b": 2}},
        "done",
        toolsets=[FilteredToolset(numbers(), allowed)],
        deps=["one"],
        deps_type=list[str],
        durable={"params_type": list[str]},
        request={"params": ["one"]},
    )


@case
def s0_17_tool_disappears_between_steps() -> Case:
    def early(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
        return definition.name == "one" or ctx.run_step < 2

    turns = [{"add": {"a": 1, "b": 2}}, {"add": {"a": 1, "b": 2}}]
    return simple(*turns, "done", toolsets=[FilteredToolset(numbers(), early)])


@case
def s0_18_prepared_rewrites_definitions() -> Case:
    async def prepare(ctx: RunContext[Any], definitions: list[ToolDefinition]) -> list[ToolDefinition]:
        return [replace(definition, description=f"{definition.name}!", strict=True) for definition in definitions]

    return simple({"one": {}, "add": {"a": 1, "b": 2}}, "done", toolsets=[PreparedToolset(numbers(), prepare)])


@dataclass
class Audited(WrapperToolset[Any]):
    """Notes each call."""

    saw: list[Any] = field(default_factory=list[Any])

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        result = await super().call_tool(name, tool_args, ctx, tool)
        self.saw.append((name, tool_args, result, ctx.tool_call_id, ctx.run_step))
        return result


@case
def s0_20_wrapper_subclass() -> Case:
    saw: list[Any] = []
    return simple({"one": {}}, {"add": {"a": 1, "b": "2"}}, "done", saw=saw, toolsets=[Audited(numbers(), saw)])


@case
def s0_14_combined() -> Case:
    parts: list[AbstractToolset[Any]] = [numbers("left").prefixed("l"), numbers("right").prefixed("r")]
    return simple({"l_one": {}, "r_add": {"a": 1, "b": 2}}, "done", toolsets=[CombinedToolset(parts), numbers()])


@case
def s0_21_set_metadata_and_return_schemas() -> Case:
    toolset = IncludeReturnSchemasToolset(SetMetadataToolset(numbers(), {"team": "x"}))
    return simple({"one": {}}, "done", toolsets=[toolset])


@case
def s0_21_dynamic_per_step() -> Case:
    def choose(ctx: RunContext[Any]) -> AbstractToolset[Any] | None:
        return numbers() if ctx.run_step < 3 else None

    turns: list[Turn] = [{"one": {}}, {"add": {"a": 1, "b": 2}}, {"one": {}}]
    return simple(*turns, "done", toolsets=[DynamicToolset(choose, id="dynamic")])


@case
def s0_21_dynamic_per_run() -> Case:
    async def choose(ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return numbers().prefixed(ctx.deps)

    return simple(
        {"x_one": {}},
        {"x_add": {"a": 1, "b": 2}},
        "done",
        toolsets=[DynamicToolset(choose, per_run_step=False, id="dynamic")],
        deps="x",
        deps_type=str,
        durable={"params_type": str},
        request={"params": "x"},
    )


@case
def s0_21_agent_toolset_decorator() -> Case:
    case = simple({"one": {}}, "done")

    @case.agent.toolset(id="chosen")
    def chosen(ctx: RunContext[Any]) -> FunctionToolset[Any]:
        return numbers()

    return case


@case
def s0_22_chain_of_three_wrappers() -> Case:
    def short(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
        return definition.name != "add"

    toolset = numbers().filtered(short).renamed({"uno": "one"}).prefixed("p")
    return simple({"p_uno": {}}, {"p_add": {"a": 1, "b": 2}}, "done", toolsets=[toolset])


@case
def s0_23_same_name_in_two_toolsets_ends_the_run() -> Case:
    """Tools that only a run knows: what is known without one is refused by the `App`."""

    def left(_ctx: RunContext[Any]) -> FunctionToolset[Any]:
        return numbers("left")

    def right(_ctx: RunContext[Any]) -> FunctionToolset[Any]:
        return numbers("right")

    return simple("never", toolsets=[DynamicToolset(left, id="some"), DynamicToolset(right, id="others")])


@case
def s0_21_toolset_instructions() -> Case:
    tools = FunctionToolset[Any](id="tools", instructions="Use the tools.")

    @tools.tool_plain
    def one() -> int:
        return 1

    @tools.instructions
    async def more(ctx: RunContext[Any]) -> str:
        return f"This is step {ctx.run_step}."

    return simple({"one": {}}, "done", toolsets=[tools], instructions="Be short.")
