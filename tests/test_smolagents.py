"""Tools of smolagents, by the real library."""

from __future__ import annotations

from typing import Any

import pytest
from PIL import Image
from pydantic_ai.messages import BinaryContent, ToolCallPart, ToolReturnPart
from smolagents.default_tools import FinalAnswerTool, UserInputTool  # pyright: ignore[reportMissingTypeStubs]
from smolagents.tools import Tool  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from temporalio.client import Client

from perdure import Approval, ToolPolicy
from perdure.errors import DeclarationError
from perdure.toolsets.smolagents import SmolagentsToolset
from tests.deciding import answers, pending, refused, update
from tests.foreign import ANN, RAN, told
from tests.harness import activities, messages, working
from tests.scripts import Script
from tests.smolagents_tools import Counts, Lookup, an_app, weather

pytestmark = pytest.mark.usefixtures("nothing_ran")


async def test_s3_16_a_decorated_function_runs_as_an_activity_in_a_thread(client: Client, cache: int) -> None:
    script = Script({"weather": {"city": "Oslo"}}, "cold")
    async with working(client, an_app(script, weather), cache=cache) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        assert (await handle.result())["output"] == "cold"
        assert await activities(handle) == ["model_request", "tool:weather", "model_request"]
        assert await answers(handle) == {"c0.0": ("success", '{"city":"Oslo","celsius":4}')}
    assert RAN == [("Oslo", None, False)]
    (shown,) = script.infos[0].function_tools
    assert shown.parameters_json_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Its name."},
            "day": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "description": "A day of the week; left out, today.",
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert shown.description == "The weather in a city."


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({}, "Argument key is required"),
    "unknown": ({"key": "a", "more": 1}, "Argument more is not in the tool's input schema"),
    "type": ({"key": 5}, "Argument key has type 'integer' but should be 'string'"),
    "a boolean is no number": ({"key": "a", "ratio": True}, "Argument ratio has type 'boolean' but should be 'number'"),
    "a part of a number": ({"key": "a", "count": 1.5}, "Argument count has type 'number' but should be 'integer'"),
    "null": ({"key": None}, "Argument key has type 'null' but should be 'string'"),
    "none of two": ({"key": "a", "either": 1.5}, "Argument either has type 'number' but should be"),
    "an item": ({"key": "a", "tags": ["x", 5]}, "The arguments are not valid: $.tags: ['x', 5] is not valid"),
}


async def test_s3_13_each_class_of_bad_arguments_is_one_retry(client: Client, cache: int) -> None:
    calls = [{"lookup": args} for args, _ in BAD.values()]
    good = {"key": "b", "ratio": 1, "tags": ["x"], "options": {"a": [1]}, "extra": None, "either": "e", "count": None}
    script = Script(*calls, {"lookup": good}, "done")
    found, handle = await told(client, an_app(script, Lookup()), cache)
    assert (await activities(handle)).count("tool:lookup") == 1
    assert [outcome for outcome, _ in found] == ["retried"] * len(BAD) + ["success"]
    for (_, text), (_, expected) in zip(found[:-1], BAD.values(), strict=True):
        assert text.startswith(expected)
    assert RAN == ["setup", "b"]


async def test_s3_14_unknown_tools_are_answered_with_those_there_are(client: Client) -> None:
    script = Script({"wether": {"city": "Oslo"}}, "done")
    async with working(client, an_app(script, weather)) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        await handle.result()
        ((outcome, text),) = (await answers(handle)).values()
    assert (outcome, RAN) == ("retried", [])
    assert "'weather'" in text


async def test_an_edit_by_an_approver_is_checked_by_the_tool_too(client: Client, cache: int) -> None:
    policy = ToolPolicy(approval=Approval(allow_edit=True))
    script = Script({"lookup": {"key": "a"}}, "done")
    async with working(client, an_app(script, Lookup(), lookup=policy), cache=cache) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        (row,) = await pending(handle, 1)
        text = await refused(handle, "approve", {"call": row["call"], "args": {"key": 5}})
        assert "Argument key has type 'integer' but should be 'string'" in text
        await update(handle, "approve", {"call": row["call"], "args": {"key": "b"}})
        await handle.result()
    assert RAN == ["setup", "b"]


class Paint(Tool):
    """Returns an image."""

    name = "paint"
    description = "Paints a square."
    inputs = {"size": {"type": "integer", "description": "Its size."}}
    output_type = "image"

    def forward(self, size: int) -> Image.Image:
        return Image.new("RGB", (size, size), "red")


async def test_results_reach_the_model_as_in_smolagents(client: Client, cache: int) -> None:
    script = Script([ToolCallPart("paint", {"size": 2}), ToolCallPart("counts", {"ctx": 3})], "done")
    async with working(client, an_app(script, Paint(), Counts()), cache=cache) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        await handle.result()
        whole = await messages(handle)
        found = await answers(handle)
    assert found["c0.1"] == ("success", "3")
    (image,) = [
        part.content
        for m in whole
        for part in m.parts
        if isinstance(part, ToolReturnPart) and part.tool_name == "paint"
    ]
    assert isinstance(image, BinaryContent)
    assert (image.media_type, image.data[:4]) == ("image/png", b"\x89PNG")


async def test_s3_12_the_result_schema_is_shown(client: Client) -> None:
    script = Script("done")
    async with working(client, an_app(script, Lookup())) as runs:
        await runs.run("clerk", "go", params=ANN)
    (shown,) = script.infos[0].function_tools
    assert "Return schema:" in (shown.description or "")


def test_s3_03_what_json_cannot_hold_is_refused_at_construction() -> None:
    class See(Paint):
        inputs = {"size": {"type": "image", "description": "An image."}}

    class Speak(Paint):
        output_type = "audio"

    class Later(Paint):
        async def forward(self, size: int) -> Image.Image:  # pyright: ignore[reportIncompatibleMethodOverride]
            raise AssertionError

    for bad, text in ((See(), "'size' is of type 'image'"), (Speak(), "output_type='audio'"), (Later(), "is async")):
        with pytest.raises(DeclarationError, match=text):
            SmolagentsToolset([bad], id="smol")


def test_s3_17_nothing_is_loaded_from_the_hub_or_a_space() -> None:
    """S3-18 too: a name of either is no tool."""
    with pytest.raises(DeclarationError, match=r"'org/repository' is no smolagents\.tools\.Tool"):
        SmolagentsToolset(["org/repository"], id="smol")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("tools", "text"),
    [
        ([weather, weather], r"several tools of the same name: \['weather'\]"),
        ([UserInputTool()], r"use perdure\.toolsets\.ask_user"),
        ([FinalAnswerTool()], "the agent's output_type does"),
    ],
    ids=["twice", "asks at the terminal", "ends a run"],
)
def test_what_has_no_place_here_is_refused_at_construction(tools: list[Tool], text: str) -> None:
    with pytest.raises(DeclarationError, match=text):
        SmolagentsToolset(tools, id="smol")
