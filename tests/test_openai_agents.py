"""Function tools of the OpenAI Agents SDK, by the real library."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any

import pytest
from agents import Agent as SDKAgent
from agents import (
    CodeInterpreterTool,
    FunctionTool,
    RunContextWrapper,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
    ToolOutputFileContent,
    ToolOutputGuardrail,
    ToolOutputGuardrailData,
    ToolOutputImage,
    ToolOutputText,
    WebSearchTool,
    function_tool,
    tool_namespace,
)
from agents.tool_context import ToolContext
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import BinaryContent, BinaryImage, ImageUrl, ToolCallPart, ToolReturnPart, UploadedFile
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy, current_call
from perdure.errors import DeclarationError
from perdure.toolsets.openai_agents import OpenAIAgentsToolset
from tests.harness import Handle, activities, failure_of, messages, working
from tests.scripts import Script
from tests.test_approvals import answers, pending, update

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def ran() -> list[Any]:
    """What the tools did."""
    RAN.clear()
    return RAN


def an_app(script: Script, *tools: FunctionTool, **policies: ToolPolicy) -> App:
    """One agent with these tools, whose dependency is its params."""
    toolset = OpenAIAgentsToolset(tools, id="sdk")
    agent = Agent(script.model, name="clerk", deps_type=dict[str, str], toolsets=[toolset], retries=20)
    return App(agents=[DurableAgent(agent, params_type=dict[str, str], policies=policies)])


async def told(client: Client, app: App, cache: int = 1000) -> tuple[list[tuple[str, str]], Handle]:
    """What the calls of a run were answered with, in order; and the run, which has ended."""
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("clerk", "go", params={"user": "ann"})
        await handle.result()
        return list((await answers(handle)).values()), handle


class Address(BaseModel):
    """Where."""

    street: str


@function_tool
async def book(ctx: RunContextWrapper[dict[str, str]], day: date, to: Address, seats: int = 2) -> str:
    """Books seats.

    Args:
        day: When.
        to: Where to.
        seats: How many.
    """
    assert isinstance(ctx, ToolContext)
    RAN.append((ctx.context["user"], day, to, seats, ctx.tool_name, ctx.tool_call_id, ctx.usage.requests))
    return f"{seats} seats"


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
    with pytest.raises(DeclarationError, match=r"it is a list, so put a \* before it"):
        OpenAIAgentsToolset([namespaced], id="sdk")  # pyright: ignore[reportArgumentType]


def slow(name: str, **options: Any) -> FunctionTool:
    """A tool that doesn't end by itself."""

    async def run() -> str:
        """Waits until it is cancelled."""
        RAN.append(name)
        await asyncio.Event().wait()
        raise AssertionError

    return function_tool(run, name_override=name, timeout=0.05, **options)


def late(ctx: RunContextWrapper[Any], error: Exception) -> str:
    """The words of a tool."""
    return f"{type(error).__name__}: ask {ctx.context['user']}"


async def test_s2_21_a_timeout_is_told_to_the_model(client: Client, cache: int) -> None:
    tools = [slow("slow"), slow("words", timeout_error_function=late)]
    script = Script([ToolCallPart("slow", {}), ToolCallPart("words", {})], "done")
    policy = ToolPolicy(effect="safe")
    found, handle = await told(client, an_app(script, *tools, slow=policy), cache)
    assert found == [
        ("failed", "Tool 'slow' timed out after 0.05 seconds."),
        ("failed", "ToolTimeoutError: ask ann"),
    ]
    assert sorted(RAN) == ["slow", "words"]
    assert (await activities(handle)).count("tool:slow") == 1


async def test_s2_21_a_timeout_that_raises_fails_the_run(client: Client, cache: int) -> None:
    """S2-24 too: the result of a call beside it is kept."""
    script = Script([ToolCallPart("slow", {}), ToolCallPart("loose", {"seats": 1})], "done")
    app = an_app(script, slow("slow", timeout_behavior="raise_exception"), loose)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("clerk", "go", params={"user": "ann"})
        failure = await failure_of(handle)
        assert (failure.type, failure.message) == ("ToolTimeout", "Tool 'slow' timed out after 0.05 seconds.")
        assert failure.non_retryable
        assert (await answers(handle))["c0.1"] == ("success", '{"seats":1}')
    assert RAN[0] == "slow"
    assert len(RAN) == 2


def failing(name: str, **options: Any) -> FunctionTool:
    """A tool that raises."""

    def run(key: str) -> str:
        """Fails."""
        RAN.append(name)
        raise ValueError("password hunter2")

    return function_tool(run, name_override=name, **options)


async def test_s2_25_faults_are_told_in_the_words_of_the_tool(client: Client, cache: int) -> None:
    """Repeated first, where the policy says that the tool may be."""
    tools = [
        failing("plain"),
        failing("words", failure_error_function=late),
        failing("none", failure_error_function=None),
    ]
    script = Script([ToolCallPart(one.name, {"key": "a"}) for one in tools], "done")
    policy = ToolPolicy(effect="idempotent", attempts=2, backoff=0.01)
    found, handle = await told(client, an_app(script, *tools, plain=policy, none=policy), cache)
    assert found == [
        ("failed", "An error occurred while running the tool. Please try again."),
        ("failed", "ValueError: ask ann"),
        ("failed", "The tool failed with ValueError."),
    ]
    assert sorted(RAN) == ["none", "none", "plain", "plain", "words"]
    assert "hunter2" not in (await handle.fetch_history()).to_json()


async def large(ctx: RunContextWrapper[Any], args: dict[str, Any], call_id: str) -> bool:
    """Whether a refund needs somebody."""
    RAN.append(("asked", args, call_id, ctx.context["user"]))
    if args["cents"] == 13:
        raise ValueError("no luck")
    return args["cents"] > 100


def gated(name: str, needs: Any, **options: Any) -> FunctionTool:
    """A tool that needs an approval."""

    def run(cents: int) -> str:
        """Refunds."""
        RAN.append((name, cents))
        return f"refunded {cents}"

    return function_tool(run, name_override=name, needs_approval=needs, **options)


async def test_needs_approval_gates_the_call(client: Client, cache: int) -> None:
    calls = [("always", 1), ("large", 101), ("large", 100), ("large", 13)]
    script = Script([ToolCallPart(name, {"cents": cents}) for name, cents in calls], "done")
    app = an_app(script, gated("always", True), gated("large", large))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("clerk", "go", params={"user": "ann"})
        rows = await pending(handle, 3)
        assert [row["args"]["cents"] for row in rows] == [1, 101, 13]
        for row, verb in zip(rows, ("approve", "deny", "approve"), strict=True):
            await update(handle, verb, {"call": row["call"], "by": "bob"})
        await handle.result()
        outcomes = [outcome for outcome, _ in (await answers(handle)).values()]
    assert outcomes == ["success", "denied", "success", "success"]
    assert sorted(row for row in RAN if row[0] != "asked") == [("always", 1), ("large", 13), ("large", 100)]
    assert ("asked", {"cents": 101}, "c0.1", "ann") in RAN


OPEN = ["yes"]
"""What the guardrail looks at, which may change while a call waits."""


def looks(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    """Rejects what isn't open any more, and ends the run for a thousand."""
    assert data.agent.name == "clerk"
    with pytest.raises(AttributeError, match="has a name, and no 'tools'"):
        _ = data.agent.tools
    if '"cents": 1000' in data.context.tool_arguments:
        return ToolGuardrailFunctionOutput.raise_exception()
    if OPEN[0] == "yes":
        return ToolGuardrailFunctionOutput.allow()
    return ToolGuardrailFunctionOutput.reject_content("closed by now")


def hides(data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
    """Replaces a result."""
    if data.output == "refunded 7":
        return ToolGuardrailFunctionOutput.reject_content("hidden")
    return ToolGuardrailFunctionOutput.allow()


GUARDED: dict[str, Any] = {
    "tool_input_guardrails": [ToolInputGuardrail(looks)],
    "tool_output_guardrails": [ToolOutputGuardrail(hides)],
}


async def test_s2_26_guardrails_look_again_after_the_approval(client: Client, cache: int) -> None:
    OPEN[0] = "yes"
    script = Script({"pay": {"cents": 7}}, {"refund": {"cents": 5}}, "done")
    app = an_app(script, gated("refund", True, **GUARDED), gated("pay", False, **GUARDED))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("clerk", "go", params={"user": "ann"})
        (row,) = await pending(handle, 1)
        OPEN[0] = "no"
        await update(handle, "approve", {"call": row["call"], "by": "bob"})
        await handle.result()
        assert list((await answers(handle)).values()) == [("success", "hidden"), ("failed", "closed by now")]
    assert RAN == [("pay", 7)]


async def test_a_guardrail_may_end_the_run(client: Client) -> None:
    script = Script({"pay": {"cents": 1000}}, "done")
    async with working(client, an_app(script, gated("pay", False, **GUARDED))) as runs:
        failure = await runs.failure("clerk", "go", params={"user": "ann"})
    assert failure.type == "ToolInputGuardrailTripwireTriggered"
    assert RAN == []


async def test_what_is_not_enabled_is_not_shown(client: Client, cache: int) -> None:
    def for_ann(ctx: RunContextWrapper[Any], agent: Any) -> bool:
        return ctx.context["user"] == "ann" and agent.name == "clerk"

    async def for_bob(ctx: RunContextWrapper[Any], agent: Any) -> bool:
        return ctx.context["user"] == "bob"

    tools = [
        gated("a", False, is_enabled=for_ann),
        gated("b", False, is_enabled=for_bob),
        gated("c", False, is_enabled=False),
    ]
    script = Script({"b": {"cents": 1}}, {"a": {"cents": 1}}, "done")
    found, _ = await told(client, an_app(script, *tools), cache)
    assert [one.name for one in script.infos[0].function_tools] == ["a"]
    assert found[0][0] == "retried"
    assert found[1] == ("success", "refunded 1")


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


def text_of(ctx: RunContextWrapper[Any], error: Exception) -> str:
    """The text of an exception, where a tool wants to show it."""
    return str(error)


async def test_what_a_tool_cannot_be_given_says_so(client: Client) -> None:
    async def invoke(ctx: RunContextWrapper[Any], args: str) -> str:
        return f"{ctx.context['user']} {args} {type(ctx).__name__}"

    @function_tool(failure_error_function=text_of)
    def peeks(ctx: ToolContext[Any], at: str) -> str:
        """Looks at the turn."""
        if at == "turn":
            return str(len(ctx.turn_input))
        ctx.approve_tool(None)  # pyright: ignore[reportArgumentType]
        raise AssertionError

    schema = {"type": "object", "properties": {}}
    handmade = FunctionTool("handmade", "d", schema, invoke)  # pyright: ignore[reportArgumentType]
    script = Script({"peeks": {"at": "turn"}}, {"peeks": {"at": "approve"}}, {"handmade": {}}, "done")
    found, _ = await told(client, an_app(script, peeks, handmade))
    assert found == [
        ("failed", "turn_input isn't known in a durable run: it holds items of the SDK's own runs"),
        ("failed", "a call is approved by the update `approve` of its run, not in a tool"),
        ("success", "ann {} RunContextWrapper"),
    ]


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


def test_options_of_the_definition_are_kept() -> None:
    late = OpenAIAgentsToolset([gated("late", True, defer_loading=True)], id="sdk").tools["late"]
    assert (late.defer_loading, late.requires_approval) == (True, True)
