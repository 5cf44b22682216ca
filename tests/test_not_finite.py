"""NaN and Infinity in a model's arguments: a tool gets what the model wrote, or the model is asked again."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic_ai import Agent, ExternalToolset, FunctionToolset
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset
from smolagents import tool as smol_tool  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from temporalio.client import Client

from perdure import App
from perdure.toolsets.smolagents import SmolagentsToolset
from tests.deciding import answers
from tests.harness import working
from tests.scripts import Script

RAN: list[Any] = []
NO_JSON = '{"value": {"x": [NaN]}}'
REFUSED = ("retried", "The arguments are not valid: NaN and Infinity are no numbers of JSON")


@pytest.fixture(autouse=True)
def ran() -> None:
    """Begins with nothing done."""
    RAN.clear()


async def test_an_argument_that_is_a_number_gets_them(client: Client, cache: int) -> None:
    def measure(one: float, more: list[float]) -> str:
        RAN.append((one, more))
        return "ok"

    script = Script([ToolCallPart("measure", '{"one": NaN, "more": [Infinity, -Infinity, 1.5]}')], "done")
    agent = Agent(script.model, name="a", tools=[measure])
    await agent.run("go")
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        await runs.run("a", "go")
    for one, more in RAN:
        assert math.isnan(one)
        assert more == [math.inf, -math.inf, 1.5]
    assert len(RAN) == 2, "once in the plain run, once in the durable one"


def keep(value: dict[str, Any]) -> str:
    """Keeps a value.

    Args:
        value: Any object.
    """
    RAN.append(value)
    return "kept"


SMOL: Any = smol_tool(keep)
ANY: dict[str, Any] = {"type": "object", "properties": {"value": {}}, "required": ["value"]}
TOOLSETS: dict[str, AbstractToolset[Any]] = {
    "plain": FunctionToolset([keep], id="tools"),
    "smolagents": SmolagentsToolset([SMOL], id="tools"),
    "external": ExternalToolset([ToolDefinition(name="keep", parameters_json_schema=ANY)], id="tools"),
}


@pytest.mark.parametrize("kind", TOOLSETS)
async def test_an_argument_of_any_json_is_refused_with_them(client: Client, cache: int, kind: str) -> None:
    turns: list[Any] = [[ToolCallPart("keep", NO_JSON)], "done"]
    if kind != "external":
        turns.insert(1, {"keep": {"value": {"x": [1]}}})
    app = App(agents=[Agent(Script(*turns).model, name="a", toolsets=[TOOLSETS[kind]], retries=2)])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("a", "go")
        await handle.result()
        expected = [REFUSED] if kind == "external" else [REFUSED, ("success", "kept")]
        assert list((await answers(handle)).values()) == expected
    assert [{"x": [1]}] * (kind != "external") == RAN
