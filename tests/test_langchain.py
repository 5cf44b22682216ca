"""Tools of LangChain, by the real library."""

from __future__ import annotations

import threading
from datetime import date
from typing import Annotated, Any

import pytest
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    ToolException,
    tool,
)
from pydantic import BaseModel, Field, SecretStr, ValidationError, model_validator
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import BinaryContent, ToolCallPart, ToolReturnPart
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy
from perdure.errors import DeclarationError
from perdure.toolsets.langchain import LangChainToolset
from tests.harness import Handle, activities, messages, working
from tests.scripts import Script
from tests.test_approvals import answers

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def ran() -> list[Any]:
    """What the tools did."""
    RAN.clear()
    return RAN


def an_app(script: Script, *tools: BaseTool, inject: Any = None, **policies: ToolPolicy) -> App:
    """One agent with these tools, whose dependency is its params."""
    toolset = LangChainToolset(tools, id="chain", inject=inject)
    agent = Agent(script.model, name="clerk", deps_type=dict[str, str], toolsets=[toolset], retries=20)
    return App(agents=[DurableAgent(agent, params_type=dict[str, str], policies=policies)])


async def told(client: Client, app: App, cache: int = 1000) -> tuple[list[tuple[str, str]], Handle]:
    """What the calls of a run were answered with, in order; and the run, which has ended."""
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("clerk", "go", params={"user": "ann"})
        await handle.result()
        return list((await answers(handle)).values()), handle


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


class Shout(BaseTool):
    """A class without a schema of its own."""

    name: str = "shout"
    description: str = "Shouts."

    def _run(self, text: str) -> str:
        return text.upper()


lookup = StructuredTool.from_function(
    func=lambda **args: args,  # pyright: ignore[reportUnknownLambdaType]
    name="lookup",
    description="Looks up.",
    args_schema={"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
)


async def test_s3_20_tools_of_every_kind_run_as_activities(client: Client, cache: int) -> None:
    single = Tool("single", lambda text: text[::-1], "Reverses.")
    calls = [
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


class Range(BaseModel):
    """Arguments with a rule that JSON Schema doesn't know."""

    low: int = Field(ge=0)
    high: int

    @model_validator(mode="after")
    def in_order(self) -> Range:
        """Low first."""
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


def ranged(name: str, handle: Any = False) -> BaseTool:
    """A tool with arguments of `Range`, and words of its own for bad ones."""

    def run(low: int, high: int) -> int:
        RAN.append((low, high))
        return high - low

    return StructuredTool.from_function(
        run, name=name, description="Ranges.", args_schema=Range, handle_validation_error=handle
    )


def say(error: Any) -> str:
    """The words of a tool."""
    assert isinstance(error, ValidationError)
    return f"{error.error_count()} things are wrong"


async def test_bad_arguments_are_asked_for_again_in_the_words_of_the_tool(client: Client, cache: int) -> None:
    tools = [ranged("plain"), ranged("text", "try again"), ranged("calls", say), lookup, Shout()]
    script = Script(
        {"plain": {"low": 2, "high": 1}},
        {"plain": {"low": -1}},
        {"text": {"low": -1}},
        {"calls": {"low": -1}},
        {"lookup": {"key": 1}},
        {"shout": {"text": 1}},
        {"plain": {"low": "1", "high": 3}},
        "done",
    )
    found, handle = await told(client, an_app(script, *tools), cache)
    assert [outcome for outcome, _ in found] == ["retried"] * 6 + ["success"]
    texts = [text.removesuffix("\n\nFix the errors and try again.") for _, text in found]
    assert texts[0] == "The arguments are not valid: $: Value error, low is above high"
    assert texts[1].startswith(
        "The arguments are not valid: $.low: Input should be greater than or equal to 0; $.high: "
    )
    assert texts[2:4] == ["try again", "2 things are wrong"]
    assert texts[4] == "The arguments are not valid: $.key: 1 is not of type 'string'"
    assert texts[5] == "The arguments are not valid: $.text: 1 is not of type 'string'"
    assert RAN == [(1, 3)]
    assert (await activities(handle)).count("tool:plain") == 1


def failing(name: str, error: Exception, handle: Any = False) -> BaseTool:
    """A tool that raises."""

    def run(key: str) -> str:
        RAN.append(key)
        raise error

    return StructuredTool.from_function(run, name=name, description="Fails.", handle_tool_error=handle)


async def test_s2_25_only_what_a_tool_handles_is_told(client: Client, cache: int) -> None:
    """A `ToolException` that the tool handles is for the model, at once; others are repeated as the policy says."""
    tools = [
        failing("plain", ValueError("password hunter2")),
        failing("unhandled", ToolException("password hunter2")),
        failing("shown", ToolException("no such key"), True),
        failing("text", ToolException("password hunter2"), "look elsewhere"),
        failing("calls", ToolException("12"), lambda error: f"code {error}"),  # pyright: ignore[reportUnknownLambdaType]
    ]
    script = Script([ToolCallPart(one.name, {"key": one.name}) for one in tools], "done")
    policy = ToolPolicy(effect="safe", attempts=2, backoff=0.01)
    app = an_app(script, *tools, **{one.name: policy for one in tools})
    found, handle = await told(client, app, cache)
    assert found == [
        ("failed", "The tool failed with ValueError."),
        ("failed", "The tool failed with ToolException."),
        ("failed", "no such key"),
        ("failed", "look elsewhere"),
        ("failed", "code 12"),
    ]
    assert sorted(RAN) == ["calls", "plain", "plain", "shown", "text", "unhandled", "unhandled"]
    assert "hunter2" not in (await handle.fetch_history()).to_json()


@tool
def whose(key: str, user: Annotated[str, InjectedToolArg], call_id: Annotated[str, InjectedToolCallId]) -> str:
    """Whose it is."""
    return f"{user}'s {key} by {call_id}"


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
    text, image = part.content  # pyright: ignore[reportGeneralTypeIssues]
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
