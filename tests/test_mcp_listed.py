"""What an MCP server lists that no model can be shown, and what it claims that contradicts itself."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from agents import FunctionTool
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy
from perdure.errors import DeclarationError
from perdure.toolsets.openai_agents import OpenAIAgentsToolset
from tests.deciding import answers, pending, update
from tests.harness import working
from tests.mcp_servers.answering import OBJECT, calls, odd, starts
from tests.reading import planned
from tests.scripts import Script

PAY: dict[str, Any] = {"name": "pay", "inputSchema": OBJECT}
BAD_NAMES = ["", "a b", "a\nb", "x" * 129, "ü"]
INVALID = [
    ({"name": "bad"}, "tools.1.inputSchema of the tool 'bad': Field required"),
    ({"name": "bad", "inputSchema": {"type": "string"}}, "tools.1.inputSchema.type: Input should be 'object'"),
]


def named(name: str) -> dict[str, Any]:
    """A tool of that name."""
    return {"name": name, "inputSchema": OBJECT}


async def test_s3_19_tools_whose_name_no_provider_takes_are_left_out_with_one_warning(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "perdure.mcp")
    script = Script({"pay": {}}, "done")
    async with odd("stdio", tmp_path, [PAY, *map(named, BAD_NAMES)]) as shop:
        async with working(client, shop.app(script.model, ttl=0)) as runs:
            assert (await runs.run("shop", "go"))["output"] == "done"
        assert calls(shop) == ["pay ok"]
    assert [[tool.name for tool in info.function_tools] for info in script.infos] == [["pay"], ["pay"]]
    warned = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert len(warned) == 1
    assert all(repr(name) in warned[0] for name in BAD_NAMES)


async def test_s3_19_a_call_of_a_tool_without_a_name_ends_like_any_other(
    client: Client, cache: int, tmp_path: Path
) -> None:
    script = Script({"": {}}, "done")
    async with odd("http", tmp_path, [named("")]) as shop:
        toolset: MCPToolset[Any] = MCPToolset(shop.source(), id="shop", init_timeout=60)
        app = App(agents=[DurableAgent(Agent(script.model, name="shop", toolsets=[toolset]))])
        async with working(client, app, cache=cache) as runs:
            handle = await runs.start("shop", "go")
            assert (await handle.result())["output"] == "done"
            assert list((await answers(handle)).values()) == [("success", '{"n":1}')]
        assert calls(shop) == [" ok"]


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "x" * 65, "a.b"])
def test_a_function_tool_of_the_sdk_whose_name_no_provider_takes_is_refused(name: str) -> None:
    async def invoke(context: Any, args: str) -> str:
        return ""

    tool = FunctionTool(name, "x", {"type": "object", "properties": {}}, invoke, strict_json_schema=False)
    with pytest.raises(DeclarationError, match=r"^toolset 'sdk': the tool name .* is not 1 to 64 of A-Z"):
        OpenAIAgentsToolset([tool], id="sdk")


@pytest.mark.parametrize(("tool", "told"), INVALID, ids=["no schema", "of text"])
async def test_s3_19_a_list_that_is_not_valid_is_told_and_the_server_stays(
    client: Client, tmp_path: Path, tool: dict[str, Any], told: str
) -> None:
    script = Script("done")
    async with odd("stdio", tmp_path, [PAY, tool]) as shop:
        agent = Agent(script.model, name="shop", toolsets=[shop.server()])
        app = App(agents=[DurableAgent(agent, model_attempts=3)])
        async with working(client, app) as runs:
            failure = await runs.failure("shop", "go")
        assert starts(shop) == 1
        assert shop.ran.count("list") == 3
    assert (failure.type, script.requests) == ("ServerUnreachable", [])
    assert failure.message.endswith(f"The MCP server 'shop' lists its tools in a way that isn't valid by MCP: {told}.")


@pytest.mark.parametrize("trusted", [False, True], ids=["claimed", "trusted"])
@pytest.mark.parametrize("pattern", [False, True], ids=["default", "pattern"])
async def test_s3_19_a_tool_that_claims_to_destroy_and_to_read_only_waits_for_an_approval(
    client: Client, tmp_path: Path, trusted: bool, pattern: bool
) -> None:
    lies = PAY | {"annotations": {"readOnlyHint": True, "destructiveHint": True}}
    script = Script({"pay": {}}, "done")
    policies = {"*": ToolPolicy(timeout=30)} if pattern else {}
    async with odd("stdio", tmp_path, [lies]) as shop:
        async with working(client, shop.app(script.model, policies, trust_annotations=trusted)) as runs:
            handle = await runs.start("shop", "go")
            (row,) = await pending(handle, 1)
            assert (row["rule"], calls(shop)) == ("destructiveHint", [])
            assert [call.options.effect for call in await planned(handle)] == ["unsafe"]
            await update(handle, "approve", {"call": row["call"], "by": "ann"})
            assert (await handle.result())["output"] == "done"
        assert calls(shop) == ["pay ok"]


async def test_s3_19_a_server_that_goes_on_without_an_answer_to_what_it_asks_returns(
    client: Client, tmp_path: Path
) -> None:
    script = Script({"pay": {"how": "elicitation/create"}}, {"pay": {"how": "sampling/createMessage"}}, "done")
    async with odd("stdio", tmp_path) as shop, working(client, shop.app(script.model)) as runs:
        handle = await runs.start("shop", "go")
        assert (await handle.result())["output"] == "done"
        rows = list((await answers(handle)).values())
    assert rows == [("success", "went on: Elicitation not supported"), ("success", "went on: Sampling not supported")]
