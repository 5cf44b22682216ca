"""`schema_tool`, and the example of docs/sources.md: what the schema doesn't allow is told, and not run."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import DeclarationError, current_call
from perdure.toolsets.schema_tool import schema_tool
from tests.command import ROOT
from tests.foreign import RAN, clerk, told
from tests.harness import activities
from tests.scripts import Script

SCHEMA = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["item"],
    "additionalProperties": False,
}
LINES = 40
"""More than a worked example of a source takes."""


@pytest.fixture(autouse=True)
def ran() -> None:
    """Begins with nothing done."""
    RAN.clear()


def move(**args: Any) -> str:
    """Says in which thread it ran, and that it knows its call."""
    RAN.append((args, threading.current_thread() is threading.main_thread(), bool(current_call().idempotency_key)))
    return "moved"


async def move_async(ctx: RunContext[Any], /, **args: Any) -> str:
    """The same, on the worker's loop, with the context."""
    assert ctx.tool_name == "move"
    return move(**args)


class Moving:
    """An object that can be called."""

    async def __call__(self, **args: Any) -> str:
        """The same."""
        return move(**args)


WRONG: dict[str, tuple[Any, str]] = {
    "missing": ({}, "'item' is a required property"),
    "wrong_type": ({"item": 3}, "$.item: 3 is not of type 'string'"),
    "unknown": ({"item": "x", "shelf": "a"}, "'shelf' was unexpected"),
    "null": ({"item": "x", "count": None}, "$.count: None is not of type 'integer'"),
    "no_object": ('["x"]', "dict"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_arguments_that_the_schema_does_not_allow_are_told_and_nothing_runs(
    client: Client, cache: int, name: str
) -> None:
    args, said = WRONG[name]
    tools = FunctionToolset[Any]([schema_tool(move, "move", "Move an item.", SCHEMA)], id="store")
    script = Script([ToolCallPart("move", args)], [ToolCallPart("move", {"item": "x"})], "done")
    answers, run = await told(client, clerk(script, tools), cache)
    (outcome, text), good = answers
    assert (outcome, good) == ("retried", ("success", "moved"))
    assert said in text
    assert [row[0] for row in RAN] == [{"item": "x"}]
    assert (await activities(run)).count("tool:move") == 1


@pytest.mark.parametrize(
    ("function", "takes_ctx", "in_main"),
    [(move, False, False), (move_async, True, True), (Moving(), False, True), (partial(move, count=2), False, False)],
    ids=["sync", "async_with_context", "object", "partial"],
)
async def test_what_can_be_called_runs_sync_ones_in_a_thread(
    client: Client, function: Callable[..., Any], takes_ctx: bool, in_main: bool
) -> None:
    tool = schema_tool(function, "move", "Move an item.", SCHEMA, takes_ctx, sequential=True)
    script = Script({"move": {"item": "x"}}, "done")
    answers, _ = await told(client, clerk(script, FunctionToolset[Any]([tool], id="store")))
    assert (answers, tool.sequential) == ([("success", "moved")], True)
    ((args, main, known),) = RAN
    assert (args["item"], main, known) == ("x", in_main, True)


async def test_a_validation_error_of_its_own_is_told_by_name(client: Client) -> None:
    class Row(BaseModel):
        count: int

    def reads(**args: Any) -> str:
        return str(Row.model_validate({"count": "a secret"}))

    tools = FunctionToolset[Any]([schema_tool(reads, "move", "Move an item.", SCHEMA)], id="store")
    answers, _ = await told(client, clerk(Script({"move": {"item": "x"}}, "done"), tools))
    assert answers == [("failed", "The tool failed with ValidationError.")]


def test_a_later_change_of_the_schema_changes_nothing() -> None:
    schema = {"type": "object", "properties": {"item": {"type": "string"}}}
    tool = schema_tool(move, "move", "Move an item.", schema)
    schema["properties"] = {}
    assert tool.function_schema.json_schema == {"type": "object", "properties": {"item": {"type": "string"}}}


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"schema_tool\('move'\) isn't a JSON Schema"):
        schema_tool(move, "move", "Move an item.", {"type": "objekt"})


def example() -> dict[str, Any]:
    """What the worked example of docs/sources.md defines."""
    (source,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "sources.md").read_text(), re.M | re.S)
    assert len(source.splitlines()) < LINES
    defined: dict[str, Any] = {}
    exec(compile(source, "sources.md", "exec", dont_inherit=True), defined)
    return defined


async def test_the_worked_example_refuses_what_its_table_does_not_have(client: Client) -> None:
    defined = example()
    asked: list[Any] = []

    def legacy(command: str, key: str, args: dict[str, Any]) -> str:
        asked.append((command, args))
        return key

    defined["legacy"] = legacy
    wrong = [{"item": "x"}, {"item": 3, "shelf": "a"}, {"item": "", "shelf": "a"}]
    calls = [ToolCallPart("move", args) for args in [*wrong, {"item": "x", "shelf": "a"}]]
    toolset = defined["LegacyToolset"](id="legacy")
    answers, _ = await told(client, clerk(Script([*calls], "done"), toolset, **defined["policies"]))
    assert [outcome for outcome, _ in answers] == ["retried"] * len(wrong) + ["success"]
    assert "'shelf' is a required property" in answers[0][1]
    assert asked == [("move", {"item": "x", "shelf": "a"})]
