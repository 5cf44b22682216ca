"""Function tools of the OpenAI Agents SDK, by the real library."""

from __future__ import annotations

import inspect
import pkgutil
import re
from datetime import date
from typing import Any

import pytest
from agents import Agent as SDKAgent
from agents import (
    CodeInterpreterTool,
    FunctionTool,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    WebSearchTool,
    function_tool,
    tool_namespace,
)
from agents.mcp import MCPServerStdio, MCPUtil
from agents.tool_context import ToolContext
from mcp.types import Tool as MCPTool
from pydantic_ai.messages import BinaryContent, BinaryImage, ImageUrl, ToolCallPart, ToolReturnPart, UploadedFile
from temporalio.client import Client

from perdure import current_call
from perdure.errors import DeclarationError
from perdure.toolsets.openai_agents import OpenAIAgentsToolset
from tests.foreign import RAN, told
from tests.harness import activities, messages, working
from tests.scripts import Script
from tests.sdk_tools import Address, an_app, book, gated

pytestmark = pytest.mark.usefixtures("nothing_ran")


@function_tool(strict_mode=False)
def loose(seats: int = 2) -> dict[str, int]:
    """Returns JSON, from a thread."""
    RAN.append(current_call().attempt)
    return {"seats": seats}


async def test_s2_04_arguments_are_validated_and_become_what_the_function_takes(client: Client, cache: int) -> None:
    args = {"day": "2026-11-30", "to": {"street": "Main"}, "seats": 3}
    script = Script({"book": args}, {"loose": {}}, "done")
    found, handle = await told(client, an_app(script, book, loose), cache)
    assert found == [("success", "3 seats"), ("success", '{"seats":2}')]
    assert [("ann", date(2026, 11, 30), Address(street="Main"), 3, "book", "c0.0", 1), 1] == RAN
    assert await activities(handle) == ["model_request", "tool:book", "model_request", "tool:loose", "model_request"]


async def test_s2_05_strict_schemas_are_shown_as_such(client: Client) -> None:
    """S2-06, S2-08 too: a lone `$ref` stays, a default makes nothing optional."""
    script = Script("done")
    await told(client, an_app(script, book, loose))
    shown = {one.name: one for one in script.infos[0].function_tools}
    assert (shown["book"].strict, shown["loose"].strict) == (True, False)
    schema = shown["book"].parameters_json_schema
    assert (schema["required"], schema["additionalProperties"]) == (["day", "to", "seats"], False)
    assert schema["properties"]["seats"]["default"] == 2
    assert schema["properties"]["day"]["description"] == "When."
    assert schema["$defs"]["Address"]["additionalProperties"] is False
    assert "required" not in shown["loose"].parameters_json_schema


async def test_bad_arguments_are_asked_for_again(client: Client, cache: int) -> None:
    good = {"day": "2026-11-30", "to": {"street": "Main"}, "seats": 1}
    script = Script(
        {"book": {**good, "seats": "many"}},
        {"book": {"day": "2026-11-30", "seats": 1}},
        {"book": {**good, "more": 1}},
        {"book": {**good, "day": "tomorrow"}},
        {"book": good},
        "done",
    )
    found, _ = await told(client, an_app(script, book), cache)
    assert [outcome for outcome, _ in found] == ["retried"] * 4 + ["success"]
    texts = [text for _, text in found]
    assert texts[0].startswith("The arguments are not valid: $.seats: 'many' is not of type 'integer'")
    assert texts[1].startswith("The arguments are not valid: $: 'to' is a required property")
    assert "'more' was unexpected" in texts[2]
    assert texts[3].startswith("Invalid JSON input for tool book")
    assert len(RAN) == 1


def test_s2_07_a_hostile_schema_is_refused_at_construction() -> None:
    deep: dict[str, Any] = {}
    for _ in range(3_000):
        deep = {"not": deep}

    async def invoke(ctx: ToolContext[Any], args: str) -> str:
        raise AssertionError

    schema = {"type": "object", "properties": {"x": deep}}
    hostile = FunctionTool("hostile", "d", {"type": "object", "properties": {}}, invoke, strict_json_schema=False)
    hostile.params_json_schema = schema
    with pytest.raises(DeclarationError, match="nested too deeply"):
        OpenAIAgentsToolset([hostile], id="sdk")


async def test_s2_15_a_namespace_is_a_prefix_and_metadata(client: Client, cache: int) -> None:
    namespaced = tool_namespace(name="travel", description="Journeys.", tools=[loose])
    script = Script({"travel_loose": {"seats": 1}}, "done")
    app = an_app(script, *namespaced)
    found, _ = await told(client, app, cache)
    assert found == [("success", '{"seats":1}')]
    (shown,) = script.infos[0].function_tools
    assert shown.metadata == {"namespace": "travel", "namespace_description": "Journeys."}
    with pytest.raises(DeclarationError, match=r"it is a list of them, so put a \* before it"):
        OpenAIAgentsToolset([namespaced], id="sdk")  # pyright: ignore[reportArgumentType]


class Opaque:
    """Not JSON."""

    def __str__(self) -> str:
        return "an opaque thing"


RESULTS: dict[str, tuple[Any, Any]] = {
    "text": (ToolOutputText(text="hello"), "hello"),
    "image": (ToolOutputImage(image_url="https://example.org/a.png"), ImageUrl("https://example.org/a.png")),
    "data": (
        {"type": "image", "image_url": "data:image/png;base64,iVBORw=="},
        BinaryImage(b"\x89PNG", media_type="image/png"),
    ),
    "file": (
        ToolOutputFileContent(file_data="aGk=", filename="a.txt"),
        BinaryContent(b"hi", media_type="text/plain"),
    ),
    "uploaded": (ToolOutputFileContent(file_id="file-1"), UploadedFile("file-1", "openai")),
    "list": ([ToolOutputText(text="a"), ToolOutputText(text="b")], ["a", "b"]),
    "json": ([{"a": 1}, []], [{"a": 1}, []]),
    "model": (Address(street="Main"), {"street": "Main"}),
    "opaque": (Opaque(), "an opaque thing"),
}


async def test_results_reach_the_model(client: Client, cache: int) -> None:
    @function_tool
    def show(kind: str) -> Any:
        """Shows."""
        return RESULTS[kind][0]

    script = Script([ToolCallPart("show", {"kind": kind}) for kind in RESULTS], "done")
    async with working(client, an_app(script, show), cache=cache) as runs:
        handle = await runs.start("clerk", "go", params={})
        await handle.result()
        parts = [p for m in await messages(handle) for p in m.parts if isinstance(p, ToolReturnPart)]
    for part, (kind, (_, expected)) in zip(parts, RESULTS.items(), strict=True):
        assert part.content == expected, kind


async def test_a_promised_object_is_checked(client: Client) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}

    @function_tool(output_json_schema=schema)
    def promises(text: str) -> str:
        """Promises an object."""
        return text

    script = Script({"promises": {"text": '{"a":1}'}}, {"promises": {"text": "[]"}}, "done")
    found, _ = await told(client, an_app(script, promises))
    assert found == [("success", '{"a":1}'), ("failed", "The tool failed with NotCarried.")]


def test_what_has_no_counterpart_is_refused_at_construction() -> None:
    coder = CodeInterpreterTool(tool_config={"type": "code_interpreter", "container": {"type": "auto"}})
    cases: list[tuple[Any, str]] = [
        (WebSearchTool(), "use pydantic_ai.native_tools.WebSearchTool"),
        (coder, "use pydantic_ai.native_tools.CodeExecutionTool"),
        (SDKAgent(name="helper").as_tool("helper", "Helps."), "is an agent of the SDK"),
        (gated("far", False, allowed_callers=["programmatic"]), "allowed_callers"),
        (gated("more", False, custom_data_extractor=print), "custom_data_extractor"),
        (print, "is no agents.tool.FunctionTool"),
    ]
    for bad, text in cases:
        with pytest.raises(DeclarationError, match=text):
            OpenAIAgentsToolset([bad], id="sdk")
    with pytest.raises(DeclarationError, match="same name"):
        OpenAIAgentsToolset([loose, loose], id="sdk")


def test_s2_01_every_tool_that_is_no_function_is_refused() -> None:
    """Of the SDK's own union of tools: a new kind must be looked at."""
    from typing import get_args, get_origin

    from agents.tool import Tool

    from perdure.toolsets.openai_agents_refused import TWINS

    kinds = {get_origin(kind) or kind for kind in get_args(Tool)}
    assert kinds - {FunctionTool} == set(TWINS)


def test_every_twin_that_is_named_exists() -> None:
    from perdure.toolsets import openai_agents_refused

    text = inspect.getsource(openai_agents_refused)
    names = re.findall(r"(?:use|by) ((?:pydantic_ai|perdure)\.[\w.]+\w)", text)
    assert {"perdure.toolsets.mcp.MCPServer", "perdure.toolsets.apply_patch.patching"} <= set(names)
    assert len(names) == 10
    for name in names:
        pkgutil.resolve_name(name)


async def test_a_tool_of_an_mcp_server_is_refused_for_the_server() -> None:
    found = MCPUtil.to_function_tool(
        MCPTool.model_validate({"name": "far", "inputSchema": {"type": "object", "properties": {}}}),
        MCPServerStdio({"command": "never"}),
        convert_schemas_to_strict=False,
    )
    with pytest.raises(DeclarationError, match=r"give the agent that server, by perdure\.toolsets\.mcp\.MCPServer"):
        OpenAIAgentsToolset([found], id="sdk")


def test_options_of_the_definition_are_kept() -> None:
    late = OpenAIAgentsToolset([gated("late", True, defer_loading=True)], id="sdk").tools["late"]
    assert (late.defer_loading, late.requires_approval) == (True, True)
