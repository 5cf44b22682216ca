"""Rows S2 of the table in docs/tools.md about schemas: types that have none, and what a strict provider is sent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import BaseModel, Field
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_ai import Agent, Tool
from temporalio.client import Client

from perdure import App
from tests.harness import working
from tests.simulator import Simulator, text


async def sent_to_openai(client: Client, tools: list[Tool[Any]]) -> dict[str, Any]:
    """The tools in the body of the request, by name."""
    with Simulator([text("done")]) as simulator:
        app = App(agents=[Agent(simulator.model(), name="schemas", tools=tools)])
        async with working(client, app) as runs:
            assert (await runs.run("schemas", "go"))["output"] == "done"
    (request,) = simulator.requests
    return {tool["function"]["name"]: tool["function"] for tool in request.body["tools"]}


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object in a schema."""
    if isinstance(schema, dict):
        found = cast("dict[str, Any]", schema)
        yield found
        yield from (inner for value in found.values() for inner in objects(value))
    if isinstance(schema, list):
        yield from (inner for value in cast("list[Any]", schema) for inner in objects(value))


async def test_s2_06_references_and_choices_are_sent_as_a_strict_provider_takes_them(client: Client) -> None:
    """Also S2-07. The model's profile does it, in the activity; what the tool declares stays as it is."""

    def adopt(pet: Pet, other: Annotated[Cat, Field(description="Another one.")]) -> str:
        """Adopt a pet."""
        return pet.kind

    tool = Tool(adopt, strict=True)
    declared = list(objects(tool.tool_def.parameters_json_schema))
    assert [set(part) for part in declared if "oneOf" in part] == [{"discriminator", "oneOf"}]
    assert {"$ref", "description"} in [set(part) for part in declared]
    sent = list(objects((await sent_to_openai(client, [tool]))["adopt"]["parameters"]))
    assert not [part for part in sent if "oneOf" in part]
    assert [len(part["anyOf"]) for part in sent if "anyOf" in part] == [2, 1]
    assert all(set(part) == {"$ref"} for part in sent if "$ref" in part)
    assert all(part["additionalProperties"] is False for part in sent if part.get("type") == "object")


def test_s2_20_a_type_without_a_schema_is_refused_where_the_tool_is_made() -> None:
    def connect(to: socket.socket) -> str:
        return str(to)

    def by_text(to: str) -> str:
        host, port = to.split(":")
        return f"{host} {int(port)}"

    with pytest.raises(PydanticSchemaGenerationError, match=r"socket\.socket"):
        Tool(connect)
    assert Tool(by_text).tool_def.parameters_json_schema["properties"]["to"] == {"type": "string"}


async def test_s2_23_optional_arguments_stay_optional_unless_the_tool_is_strict(client: Client) -> None:
    """What OpenAI is sent: with defaults a tool isn't strict by itself; `strict=True` makes every argument required."""

    def weather(city: str, unit: str = "C", note: str | None = None) -> str:
        """Say the weather."""
        return city

    def plain(city: str) -> str:
        """Say the weather."""
        return city

    tools = [Tool(weather, name="open"), Tool(weather, name="strict", strict=True), Tool(plain)]
    sent = await sent_to_openai(client, tools)
    assert {name: (tool.get("strict"), tool["parameters"]["required"]) for name, tool in sent.items()} == {
        "open": (None, ["city"]),
        "strict": (True, ["city", "unit", "note"]),
        "plain": (True, ["city"]),
    }
    assert sent["open"]["parameters"]["properties"]["unit"]["default"] == "C"
    assert "default" not in sent["strict"]["parameters"]["properties"]["unit"]
