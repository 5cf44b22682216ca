"""Tools that the provider runs: passed through, kept verbatim, refused or replaced where the model lacks them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import NativeTool, WebSearch
from pydantic_ai.messages import (
    FilePart,
    ModelMessage,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.native_tools import (
    AbstractNativeTool,
    CodeExecutionTool,
    FileSearchTool,
    ImageGenerationTool,
    MCPServerTool,
    WebSearchTool,
)
from pydantic_ai.usage import RequestUsage
from temporalio.client import Client

from perdure import App, DeclarationError, DurableAgent
from tests.compacting import Summarizer, compacted
from tests.harness import activities, attempts, messages, working
from tests.namespaces import LOCAL, Searching
from tests.native import EVERY, PIXEL, app, failed
from tests.sessions import runs_of

AT = datetime(2026, 11, 30, tzinfo=UTC)
MCP = MCPServerTool(id="docs", url="https://example.com/mcp", allowed_tools=["read"])


def native(tool: str, args: Any, content: Any, id: str = "n1") -> list[Any]:
    """A tool of the provider, as it stands in its response, with what only the provider understands."""
    return [
        NativeToolCallPart(tool, args, tool_call_id=id, provider_name="function", provider_details={"status": "done"}),
        NativeToolReturnPart(
            *(tool, content), tool_call_id=id, timestamp=AT, provider_name="function", provider_details={"nested": [1]}
        ),
    ]


KINDS: dict[str, tuple[AbstractNativeTool, list[Any]]] = {
    "s2_type_02_file_search": (
        FileSearchTool(file_store_ids=["store"]),
        native("file_search", {"queries": ["terms"]}, {"results": [{"file_id": "f1", "score": 0.5}]}),
    ),
    "s2_type_03_web_search": (WebSearchTool(), native("web_search", {"query": "x"}, {"sources": [{"url": "u"}]})),
    "s2_type_05_hosted_mcp": (MCP, native("mcp_server:docs", {"action": "call_tool"}, {"output": "text"})),
    "s2_type_10_image_generation": (
        ImageGenerationTool(),
        [*native("image_generation", {}, {"status": "completed"}), FilePart(PIXEL, id="image-1")],
    ),
    "s2_type_11_code_execution": (
        CodeExecutionTool(),
        native("code_execution", {"code": "print(1)"}, {"stdout": "1\n", "exit_code": 0}),
    ),
}


def first_response(conversation: list[ModelMessage]) -> ModelResponse:
    return next(message for message in conversation if isinstance(message, ModelResponse))


@pytest.mark.parametrize("kind", KINDS)
async def test_s2_01_a_tool_of_the_provider_is_no_activity_and_kept_verbatim(client: Client, kind: str) -> None:
    tool, parts = KINDS[kind]
    ran: list[str] = []
    script = Searching([*parts, ToolCallPart("look", {"n": 1})], [TextPart("done")], profile=EVERY)
    async with working(client, app(script, tool, ran=ran), cache=0) as runs:
        handle = await runs.start("office", "go")
        assert (await handle.result())["output"] == "done"
        assert await activities(handle) == ["model_request", "tool:look", "model_request"]
        assert list(first_response(await messages(handle)).parts[:-1]) == parts
    assert list(first_response(script.requests[1]).parts[:-1]) == parts, "it goes back as it came"
    assert [info.model_request_parameters.native_tools for info in script.infos] == [[tool]] * 2
    assert ran == ["look"]


async def test_s2_01_an_answer_that_only_the_provider_worked_for(client: Client, cache: int) -> None:
    _, parts = KINDS["s2_type_03_web_search"]
    script = Searching([*parts, TextPart("Found.")], profile=EVERY)
    async with working(client, app(script, WebSearchTool()), cache=cache) as runs:
        handle = await runs.start("office", "go")
        assert (await handle.result())["output"] == "Found."
        assert await activities(handle) == ["model_request"]


async def test_s2_01_parts_of_the_provider_are_kept_by_continue_as_new(rolling_client: Client, cache: int) -> None:
    every = [part for _, parts in KINDS.values() for part in parts]
    looks: list[dict[str, Any]] = [{"look": {"n": n}} for n in range(7)]
    script = Searching([*every, ToolCallPart("look", {})], *looks, "done", profile=EVERY)
    tools = [tool for tool, _ in KINDS.values()]
    async with working(rolling_client, app(script, *tools), cache=cache) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        assert await runs_of(handle) > 1
    for request in script.requests[1:]:
        assert list(first_response(request).parts[:-1]) == every


async def test_s2_01_a_compaction_stands_for_parts_of_the_provider_and_keeps_the_latest(client: Client) -> None:
    def step(n: int) -> ModelResponse:
        own = native("web_search", {"query": f"saw-{n}"}, {"sources": [f"saw-{n}"]}, id=f"n{n}")
        usage = RequestUsage(input_tokens=200 * n, output_tokens=1)
        return ModelResponse(parts=[*own, ToolCallPart("look", {"n": n}, tool_call_id=f"id{n}")], usage=usage)

    def turn(found: list[ModelMessage], info: Any) -> ModelResponse:
        calls = [call.tool_call_id for one in found if isinstance(one, ModelResponse) for call in one.tool_calls]
        n = int(calls[-1].removeprefix("id")) + 1 if calls else 1
        return step(n) if n < 6 else ModelResponse(parts=[TextPart("done")])

    script, short = Searching(*[turn] * 6, profile=EVERY), Summarizer()
    async with working(client, app(script, WebSearchTool(), **compacted(short))) as runs:
        handle = await runs.start("office", "go")
        assert (await handle.result())["output"] == "done"
        assert "compact" in await activities(handle)
    assert "Assistant calls web_search" in short.asked[0]
    assert "saw-1" in short.asked[0]
    latest = [one for one in script.requests[-1] if isinstance(one, ModelResponse)][-1]
    assert [type(part) for part in latest.parts] == [NativeToolCallPart, NativeToolReturnPart, ToolCallPart]


LACKING: list[tuple[Any, str]] = [
    (NativeTool(WebSearchTool()), r"\['WebSearchTool'\] not supported by this model"),
    (NativeTool(CodeExecutionTool()), r"\['CodeExecutionTool'\] not supported by this model"),
    (WebSearch(), r"\['WebSearchTool'\] not supported by this model"),
]


@pytest.mark.parametrize(("capability", "message"), LACKING)
def test_s2_01_a_native_tool_that_the_model_lacks_is_refused_by_the_app(capability: Any, message: str) -> None:
    model, with_it = Searching(profile=LOCAL).model, Searching(profile=EVERY).model
    with pytest.raises(DeclarationError, match=message):
        App(agents=[Agent(model, name="office", capabilities=[capability])])
    agent = Agent(with_it, name="office", capabilities=[capability])
    App(agents=[agent])
    with pytest.raises(DeclarationError, match=message):
        App(agents=[DurableAgent(agent, models={"other": model})])


def look_up(query: str) -> str:
    """Look something up."""
    return f"locally: {query}"


async def test_s2_type_03_a_local_tool_takes_the_place_of_a_native_one(client: Client) -> None:
    capability = WebSearch(local=look_up)
    script = Searching({"look_up": {"query": "x"}}, "done", profile=LOCAL)
    native_script = Searching([*KINDS["s2_type_03_web_search"][1], TextPart("done")], profile=EVERY)
    agent = Agent(script.model, name="office", capabilities=[capability])
    one = App(agents=[DurableAgent(agent, models={"native": native_script.model})])
    async with working(client, one) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        assert await activities(handle) == ["model_request", "tool:look_up", "model_request"]
        await runs.run("office", "go", model="native")
    assert [tool.name for tool in script.infos[0].function_tools] == ["look_up"]
    assert script.infos[0].model_request_parameters.native_tools == []
    assert native_script.infos[0].function_tools == []


async def test_s2_01_a_model_that_is_named_is_asked_when_the_run_begins(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    agent = Agent(
        Searching("never", profile=EVERY).model, name="office", capabilities=[NativeTool(CodeExecutionTool())]
    )
    one = App(agents=[DurableAgent(agent, models={"chat": "openai-chat:gpt-4o"})])
    async with working(client, one) as runs:
        failure = await runs.failure("office", "go", model="chat")
    assert failure.type == "InvalidRequest"
    assert "['CodeExecutionTool'] not supported by this model" in failure.message


async def test_s2_01_what_only_a_request_can_tell_ends_the_run_with_one_attempt(client: Client) -> None:
    def chosen(ctx: Any) -> AbstractNativeTool:
        return CodeExecutionTool()

    agent = Agent(Searching(profile=LOCAL).model, name="office", capabilities=[NativeTool(chosen)])
    async with working(client, App(agents=[agent])) as runs:
        handle, failure = await failed(runs, "office")
        assert await attempts(handle) == [1]
    assert failure.type == "UserError"
    assert "['CodeExecutionTool'] not supported by this model" in failure.message


async def test_s2_type_06_a_tool_of_raw_text_is_a_function_of_one_text(client: Client) -> None:
    script = Searching({"look_up": {"query": "SELECT 1;\n-- 'as it is'"}}, "done", profile=EVERY)
    agent = Agent(script.model, name="office", tools=[look_up])
    async with working(client, App(agents=[agent])) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        (answer,) = [part for one in await messages(handle) for part in one.parts if part.part_kind == "tool-return"]
    assert answer.content == "locally: SELECT 1;\n-- 'as it is'"
