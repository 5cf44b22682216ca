"""Two faces of each tool from one definition: JSON Schema, and a Python signature with a docstring."""

from __future__ import annotations

import ast
import inspect
import json
import types
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import Agent, Tool
from pydantic_ai.capabilities import IncludeToolReturnSchemas
from pydantic_ai.tools import ToolDefinition
from temporalio.client import Client

from perdure import App
from perdure.toolsets.contract import ToolContract
from perdure.toolsets.contract_toolset import ContractToolset
from perdure.toolsets.describe import as_json, as_python, identifier
from tests.command import perdure
from tests.harness import working
from tests.scripts import Script


class Place(BaseModel):
    city: str = Field(description='Its "usual" name.')
    country: str | None = None


class Weather(BaseModel):
    """What it is like."""

    degrees: float = Field(ge=-100, description="Celsius.")
    wind: dict[str, int] = {}


def weather(place: Place, days: list[int], unit: str = "C") -> Weather:
    r"""How warm it is, \ or "isn't".

    Args:
        place: Where, at the end a quote"
        days: Which days.
        unit: C or F.
    """
    raise NotImplementedError


def look(n: Annotated[int, Field(description="Where.")]) -> str:
    """Look something up."""
    raise NotImplementedError


class Order(BaseModel):
    since: Annotated[str, Field(alias="from", description="The first day.")]
    count: int = Field(1, description="How many.")


ORDER = ToolContract("order", "Order something.", Order, Weather, include_return_schema=True)
TOOLS = [Tool[Any](weather).tool_def, ORDER.tool_definition(), Tool[Any](look, name="to-2").tool_def]


def functions(source: str) -> dict[str, Any]:
    """The functions of a module of that source."""
    module = types.ModuleType("shown")
    exec(compile(source, "shown", "exec"), vars(module))
    return {name: value for name, value in vars(module).items() if inspect.isfunction(value)}


def test_s3_10_s3_11_both_faces_have_the_same_names_and_arguments() -> None:
    shown = functions(as_python(TOOLS))
    faces = {tool["name"]: tool for tool in as_json(TOOLS)}
    assert list(shown) == ["weather", "order", "to_2"]
    assert list(faces) == ["weather", "order", "to-2"]
    for function, face in zip(shown.values(), faces.values(), strict=True):
        parameters = inspect.signature(function).parameters
        schema = face["parameters"]
        assert {name.rstrip("_") for name in parameters} == set(schema["properties"])
        required = {name.rstrip("_") for name, value in parameters.items() if value.default is value.empty}
        assert required == set(schema.get("required", []))
        assert (inspect.getdoc(function) or "").startswith(face["description"])
        text = inspect.getdoc(function) or ""
        for name, value in zip(parameters, schema["properties"].values(), strict=True):
            assert f"    {name}: {value['description']}" in text


def test_s3_12_the_schema_of_the_result_is_in_the_docstring() -> None:
    shown = functions(as_python(TOOLS))
    _, _, rest = (shown["order"].__doc__ or "").partition("Return schema:")
    text = inspect.cleandoc(rest)
    schema, _ = json.JSONDecoder().raw_decode(text)
    assert schema == ORDER.output_schema
    assert "Return schema:" not in (shown["to_2"].__doc__ or "")


async def test_s3_12_the_model_is_shown_the_schema_of_the_result(client: Client, cache: int) -> None:
    toolset = ContractToolset(id="orders")
    toolset.external(ORDER)
    script = Script("done")
    make: Any = Agent
    async with working(client, App(agents=[make(script.model, name="desk", toolsets=[toolset])]), cache=cache) as runs:
        await runs.run("desk", "go")
    (tool,) = script.infos[0].function_tools
    assert tool.description == f"Order something.\n\nReturn schema:\n\n{json.dumps(ORDER.output_schema, indent=2)}"


async def test_a_contract_is_shown_with_its_result_where_the_agent_says_so(client: Client) -> None:
    toolset = ContractToolset(id="orders")
    toolset.external(ToolContract("order", "Order something.", Order, Weather))
    script = Script("done")
    make: Any = Agent
    agent = make(script.model, name="desk", toolsets=[toolset], capabilities=[IncludeToolReturnSchemas()])
    async with working(client, App(agents=[agent])) as runs:
        await runs.run("desk", "go")
    (tool,) = script.infos[0].function_tools
    assert "Return schema:" in (tool.description or "")


@pytest.mark.parametrize(("name", "written"), [("a-b", "a_b"), ("2fa", "_2fa"), ("class", "class_"), ("look", "look")])
def test_a_name_that_python_cannot_write_is_changed(name: str, written: str) -> None:
    assert identifier(name) == written
    ast.parse(as_python([ToolDefinition(name=name, description='"""\\')]))


APP = '''
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.models.test import TestModel
from perdure import App

tools = FunctionToolset(id="t")


@tools.tool_plain
def look(n: int) -> str:
    """Look something up."""
    return str(n)


agents = [Agent(TestModel(), name=name, toolsets=[tools]) for name in ("one", "two")]
app = App(agents=agents)
'''


async def test_tools_prints_either_face(tmp_path: Path) -> None:
    (tmp_path / "users_app.py").write_text(APP)
    done = await perdure("tools", "users_app:app", "one", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("# Tools of agent 'one'\n")
    assert 'def look(*, n: int) -> str:\n    """Look something up."""\n    ...\n' in done.out
    assert list(functions(done.out)) == ["look"]
    done = await perdure("tools", "users_app:app", "--as", "json", cwd=tmp_path)
    found = json.loads(done.out)
    assert list(found) == ["one", "two"]
    assert found["one"][0]["returns"] == {"type": "string"}
    done = await perdure("tools", "users_app:app", "three", cwd=tmp_path)
    assert done.code == 2
    assert "no agent is named 'three'. Known agents: ['one', 'two']" in " ".join(done.err.split())
