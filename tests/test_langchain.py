"""Tools of LangChain, by the real library."""

from __future__ import annotations

import threading
from datetime import date
from typing import Any

import pytest
from langchain_core.tools import (
    StructuredTool,
    Tool,
    tool,
)
from pydantic import SecretStr
from pydantic_ai import RunContext
from pydantic_ai.messages import BinaryContent, ModelResponsePart, ToolCallPart, ToolReturnPart
from temporalio.client import Client

from perdure.errors import DeclarationError
from perdure.toolsets.langchain import LangChainToolset
from tests.foreign import RAN, told
from tests.harness import activities, messages, working
from tests.langchain_tools import Shout, an_app, lookup, whose
from tests.scripts import Script

pytestmark = pytest.mark.usefixtures("nothing_ran")


@tool
def add(left: int, right: int = 2) -> int:
    """Adds two numbers."""
    RAN.append(("sync", threading.current_thread() is threading.main_thread()))
    return left + right


@tool
async def fetch(day: date) -> dict[str, Any]:
    """Fetches a day."""
    RAN.append(("async", threading.current_thread() is threading.main_thread(), day))
    return {"day": str(day), "text": "ä"}


def backwards(text: str) -> str:
    """Reverses."""
    return text[::-1]


async def test_s3_20_tools_of_every_kind_run_as_activities(client: Client, cache: int) -> None:
    single = Tool("single", backwards, "Reverses.")
    calls: list[ModelResponsePart] = [
        ToolCallPart("add", {"left": 1}),
        ToolCallPart("fetch", {"day": "2026-11-30"}),
        ToolCallPart("shout", {"text": "hey"}),
        ToolCallPart("lookup", {"key": "a"}),
        ToolCallPart("single", {"tool_input": "abc"}),
    ]
    script = Script(calls, "done")
    found, handle = await told(client, an_app(script, add, fetch, Shout(), lookup, single), cache)
    assert [text for _, text in found] == ["3", '{"day": "2026-11-30", "text": "ä"}', "HEY", '{"key": "a"}', "cba"]
    assert {outcome for outcome, _ in found} == {"success"}
    ran = await activities(handle)
    assert ran[0] == ran[-1] == "model_request"
    assert sorted(ran[1:-1]) == ["tool:add", "tool:fetch", "tool:lookup", "tool:shout", "tool:single"]
    assert sorted(RAN) == [("async", True, date(2026, 11, 30)), ("sync", False)]
    shown = {shown.name: shown.parameters_json_schema for shown in script.infos[0].function_tools}
    assert shown["add"]["required"] == ["left"]
    assert shown["fetch"]["properties"]["day"]["format"] == "date"
    assert shown["single"]["required"] == ["tool_input"]


async def test_injected_arguments_are_not_the_models_to_give(client: Client, cache: int) -> None:
    def user(ctx: RunContext[dict[str, str]]) -> str:
        return ctx.deps["user"]

    script = Script({"whose": {"key": "a", "user": "root"}}, {"whose": {"key": "a"}}, "done")
    found, _ = await told(client, an_app(script, whose, inject={"user": user}), cache)
    assert found[0][0] == "retried"
    assert "['user'] can't be given" in found[0][1]
    assert found[1] == ("success", "ann's a by c1.0")
    assert list(script.infos[0].function_tools[0].parameters_json_schema["properties"]) == ["key"]


class Opaque:
    """Not JSON."""


ARTIFACTS: list[tuple[Any, Any]] = [
    ({"rows": [1, 2]}, {"artifact": {"rows": [1, 2]}}),
    (Opaque(), {"artifact_omitted": "Opaque is not JSON"}),
    ("x" * 70_000, {"artifact_omitted": "70002 bytes; it may have 65536"}),
]


@pytest.mark.parametrize(("artifact", "kept"), ARTIFACTS, ids=["json", "opaque", "large"])
async def test_content_goes_to_the_model_and_an_artifact_beside_it(client: Client, artifact: Any, kept: Any) -> None:
    @tool(response_format="content_and_artifact")
    def report() -> tuple[str, Any]:
        """Reports."""
        return "two rows", artifact

    script = Script({"report": {}}, "done")
    async with working(client, an_app(script, report)) as runs:
        handle = await runs.start("clerk", "go", params={})
        await handle.result()
        (part,) = [p for m in await messages(handle) for p in m.parts if isinstance(p, ToolReturnPart)]
    assert (part.content, part.metadata) == ("two rows", kept)


async def test_blocks_of_content_reach_the_model(client: Client) -> None:
    @tool
    def show() -> list[dict[str, Any]]:
        """Shows."""
        return [{"type": "text", "text": "a pixel"}, {"type": "image", "base64": "iVBORw==", "mime_type": "image/png"}]

    script = Script({"show": {}}, "done")
    async with working(client, an_app(script, show)) as runs:
        handle = await runs.start("clerk", "go", params={})
        await handle.result()
        (part,) = [p for m in await messages(handle) for p in m.parts if isinstance(p, ToolReturnPart)]
    content: Any = part.content
    text, image = content
    assert text == "a pixel"
    assert isinstance(image, BinaryContent)
    assert (image.data, image.media_type) == (b"\x89PNG", "image/png")


def test_what_has_no_counterpart_is_refused_at_construction() -> None:
    from pydantic.v1 import BaseModel as OldModel

    class Old(OldModel):
        key: str

    def run(key: str) -> str:
        """Never."""
        raise AssertionError

    direct = StructuredTool.from_function(run, return_direct=True)
    old = StructuredTool.from_function(run, args_schema=Old)
    cases: list[tuple[Any, dict[str, Any] | None, str]] = [
        (whose, None, r"LangChain injects \['user'\]"),
        (add, {"user": str}, r"no tool has the injected arguments \['user'\]"),
        (direct, None, "return_direct=True"),
        (old, None, "Pydantic v1"),
        (print, None, "is no langchain_core.tools.base.BaseTool"),
    ]
    for bad, inject, text in cases:
        with pytest.raises(DeclarationError, match=text):
            LangChainToolset([bad], id="chain", inject=inject)


def test_a_schema_with_a_secret_is_refused_by_the_app() -> None:
    @tool
    def login(password: SecretStr) -> str:
        """Logs in."""
        raise AssertionError

    with pytest.raises(DeclarationError, match="'password' is write-only"):
        an_app(Script(), login)


def test_loading_that_is_put_off_stays_so() -> None:
    @tool(extras={"defer_loading": True})
    def late(key: str) -> str:
        """Late."""
        raise AssertionError

    assert LangChainToolset([late], id="chain").tools["late"].defer_loading
