"""What a foreign tool returns that nobody can read: told as a fault by name, never as a success with nothing in it."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest
from agents import FunctionTool, ToolOutputFileContent, ToolOutputImage, function_tool
from agents.tool_context import ToolContext
from langchain_core.tools import BaseTool, StructuredTool, tool
from temporalio.client import Client

from perdure.errors import DeclarationError
from perdure.toolsets.langchain import LangChainToolset
from perdure.toolsets.openai_agents import OpenAIAgentsToolset
from tests.foreign import RAN, clerk, told
from tests.scripts import Script


@pytest.fixture(autouse=True)
def ran() -> None:
    """Begins with nothing done."""
    RAN.clear()


async def called(client: Client, cache: int, toolset: Any, name: str, **args: Any) -> tuple[str, str]:
    """What one call was answered with."""
    found, _ = await told(client, clerk(Script({name: args}, "done"), toolset), cache)
    (answer,) = found
    return answer


def pieces(n: int) -> Generator[int]:
    """Gives pieces."""
    RAN.append(n)
    yield n


async def async_pieces(n: int) -> AsyncGenerator[int]:
    """Gives pieces."""
    RAN.append(n)
    yield n


class Pieces(BaseTool):
    """A class whose method is a generator."""

    name: str = "pieces"
    description: str = "Gives pieces."

    def _run(self, n: int) -> Any:
        RAN.append(n)
        yield n


GENERATORS: dict[str, BaseTool] = {
    "function": tool(pieces),
    "async": StructuredTool.from_function(func=pieces, coroutine=async_pieces, name="pieces"),  # pyright: ignore[reportArgumentType]
    "class": Pieces(),
}


@pytest.mark.parametrize("kind", GENERATORS)
async def test_a_generator_of_langchain_isnt_told_as_a_result(client: Client, cache: int, kind: str) -> None:
    answer = await called(client, cache, LangChainToolset([GENERATORS[kind]], id="chain"), "pieces", n=1)
    assert answer == ("failed", "The tool was not run: it is a generator, and can be read once only; return a list.")
    assert RAN == []


class Named:
    """An object that says what it is."""

    def __str__(self) -> str:
        return "a name"


RESULTS: dict[str, Any] = {"object": object(), "lock": threading.Lock(), "nested": {"one": object()}}


@function_tool
def give(kind: str) -> Any:
    """Gives something."""
    return Named() if kind == "named" else RESULTS[kind]


@pytest.mark.parametrize("kind", RESULTS)
async def test_what_json_cant_hold_is_a_fault_of_an_sdk_tool(client: Client, cache: int, kind: str) -> None:
    outcome, text = await called(client, cache, OpenAIAgentsToolset([give], id="sdk"), "give", kind=kind)
    assert outcome == "failed"
    assert "can't be written as JSON" in text
    assert ("lock" if kind == "lock" else "object") in text


async def test_an_object_with_words_of_its_own_is_text_as_in_the_sdk(client: Client, cache: int) -> None:
    answer = await called(client, cache, OpenAIAgentsToolset([give], id="sdk"), "give", kind="named")
    assert answer == ("success", "a name")


@tool
def picture(data: str) -> list[dict[str, str]]:
    """A picture."""
    return [{"type": "image", "base64": data, "mime_type": "image/png"}]


@function_tool
def show(data: str) -> Any:
    """A picture or a file."""
    if data.startswith("data:"):
        return ToolOutputImage(image_url=data)
    return ToolOutputFileContent(file_data=data, filename="a.png")


@pytest.mark.parametrize("data", ["!!", "a", "iVBORw0KGgo=…"])
@pytest.mark.parametrize("kind", ["langchain", "file", "image"])
async def test_an_image_that_isnt_base64_is_a_fault(client: Client, cache: int, kind: str, data: str) -> None:
    if kind == "langchain":
        name, toolset = "picture", LangChainToolset([picture], id="chain")
    else:
        name, toolset = "show", OpenAIAgentsToolset([show], id="sdk")
    given = f"data:image/png;base64,{data}" if kind == "image" else data
    answer = await called(client, cache, toolset, name, data=given)
    assert answer == ("failed", f"The tool {name!r} ran, but the data of an image or file it returned isn't base64.")


async def test_base64_in_lines_is_read(client: Client, cache: int) -> None:
    outcome, _ = await called(
        client, cache, LangChainToolset([picture], id="chain"), "picture", data="iVBO\nRw0K\nGgo=\n"
    )
    assert outcome == "success"


async def run_raw(_context: ToolContext[Any], arguments: str) -> str:
    """What a raw tool does."""
    return arguments


@pytest.mark.parametrize("schema", [True, {"type": "string"}, None, [], {"type": ["object", "null"]}])
def test_a_schema_of_arguments_that_isnt_one_of_an_object_is_refused(schema: Any) -> None:
    raw = FunctionTool("raw", "Raw.", {}, run_raw, strict_json_schema=False)
    raw.params_json_schema = schema
    with pytest.raises(DeclarationError, match="params_json_schema"):
        OpenAIAgentsToolset([raw], id="sdk")
