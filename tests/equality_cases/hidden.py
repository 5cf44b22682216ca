"""Tools that a run comes to know: hidden ones found by search or revealed by a tool, and one added by a tool."""

from __future__ import annotations

from typing import Any

from pydantic_ai import FunctionToolset, ToolReturn
from pydantic_ai.toolsets import DeferredLoadingToolset

from tests.equality_cases.base import Case, call, calls, case, simple
from tests.equality_cases.toolsets import numbers


@case
def s0_21_deferred_tools_found_by_search_then_called() -> Case:
    turns = [{"search_tools": {"queries": ["add numbers"]}}, {"add": {"a": 1, "b": 2}}]
    return simple(*turns, "done", toolsets=[DeferredLoadingToolset(numbers())])


@case
def s0_21_hidden_tool_called_before_it_was_found() -> Case:
    turns = [
        {"add": {"a": 1, "b": 2}},
        {"add": {"a": 1, "b": 2}},
        {"search_tools": {"queries": ["add"]}},
        {"add": {"a": 1, "b": 2}},
    ]
    return simple(*turns, "done", toolsets=[numbers().defer_loading(["add"])])


@case
def s0_21_hidden_tool_called_beside_its_search() -> Case:
    turn = calls(call("search_tools", {"queries": ["add"]}), call("add", {"a": 1, "b": 2}))
    return simple(turn, {"add": {"a": 1, "b": 2}}, "done", toolsets=[numbers().defer_loading()])


@case
def s0_21_two_searches_reveal_the_same_tool_once() -> Case:
    turn = calls(call("search_tools", {"queries": ["add"]}), call("search_tools", {"queries": ["add numbers", "one"]}))
    return simple(turn, {"add": {"a": 1, "b": 2}, "one": {}}, "done", toolsets=[numbers().defer_loading()])


@case
def s0_21_tool_return_reveals_a_tool() -> Case:
    def unlock() -> ToolReturn[str]:
        return ToolReturn("unlocked", tools=["one"])

    return simple({"unlock": {}}, {"one": {}}, "done", tools=[unlock], toolsets=[numbers().defer_loading()])


@case
def tool_added_by_a_tool_during_the_run() -> Case:
    tools = FunctionToolset[Any](id="growing")

    def grown() -> str:
        """Grown."""
        return "grown"

    @tools.tool_plain
    def grow() -> str:
        """Grow."""
        if "grown" not in tools.tools:
            tools.add_function(grown)
        return "ok"

    return simple({"grow": {}}, {"grown": {}}, "done", toolsets=[tools])
