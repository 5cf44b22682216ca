"""What an MCP server's errors, lists and open calls are taken for: docs/mcp.md."""

from __future__ import annotations

from typing import Any

import pytest
from fastmcp.client import Client as MCPClient
from mcp.shared.exceptions import MCPError
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import App, Approval, DurableAgent, ToolPolicy
from perdure.toolsets.lost import lost, timed_out
from perdure.toolsets.mcp import MCPServer
from tests.deciding import pending, texts, update
from tests.harness import until, working
from tests.mcp_servers import Shop, over_stdio
from tests.scripts import Script

shop = over_stdio


async def failing_look(ctx: Any, call: Any, name: str, args: dict[str, Any]) -> Any:
    """A hook of the app, which fails for one tool."""
    if name == "look":
        raise RuntimeError("the hook's own")
    return await call(name, args)


def never(ctx: Any, args: dict[str, Any]) -> bool:
    """A predicate that gates no call."""
    return False


@pytest.mark.parametrize("other", ["done", {"look": {"n": 2}}], ids=["lists", "fails"])
async def test_s3_19_what_one_run_meets_with_ends_no_call_of_another(
    client: Client, cache: int, shop: Shop, other: Any
) -> None:
    def turns(messages: list[Any], info: Any) -> Any:
        return {"block": {"n": 1}} if messages[0].parts[-1].content == "block" else other

    script = Script(turns, "done")
    app = shop.app(script.model, ttl=0, process_tool_call=failing_look)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("shop", "block")
        await until(lambda: shop.ran == ["block 1"])
        assert (await runs.run("shop", "go"))["output"] == "done"
        shop.journal.with_name("go").touch()
        assert (await handle.result())["output"] == "done"
        assert await texts(handle) == ["went 1"]
    assert shop.ran == ["block 1"]
    assert len([line for line in shop.lines if line.startswith("start ")]) == 1


@pytest.mark.parametrize("own", [True, False], ids=["MCPServer", "MCPToolset"])
async def test_s3_19_an_error_of_the_servers_own_is_an_answer_whatever_its_code(
    client: Client, cache: int, shop: Shop, own: bool
) -> None:
    script = Script({"quota": {"n": 1}}, {"look": {"n": 2}}, "done")
    theirs: MCPToolset[Any] = MCPToolset(shop.source(), id="shop", init_timeout=60)
    agent = Agent(script.model, name="shop", toolsets=[shop.server() if own else theirs])
    async with working(client, App(agents=[DurableAgent(agent)]), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        assert (await handle.result())["output"] == "done"
        refused, saw = await texts(handle)
    assert refused.startswith("Quota used up")
    assert saw == "saw 2"


async def test_what_the_library_says_of_an_answer_that_is_lost(shop: Shop) -> None:
    """The words and codes that `lost` knows: an upgrade of MCP's library that changes them breaks here first."""
    async with MCPClient(shop.source()) as connected:
        with pytest.raises(MCPError) as late:
            await connected.call_tool("hang", {"n": 1}, timeout=0.5)
        with pytest.raises(MCPError) as closed:
            await connected.call_tool("die", {"n": 1})
    assert (late.value.code, late.value.message) == (-32001, "Request 'tools/call' timed out")
    assert (closed.value.code, closed.value.message) == (-32000, "Connection closed")
    assert (lost(late.value), timed_out(late.value)) == (True, True)
    assert (lost(closed.value), timed_out(closed.value)) == (True, False)


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (-32000, "SSE stream ended without a response", True),
        (-32000, "SSE stream failed: gone", True),
        (-32000, "Quota used up", False),
        (-32001, "Session not found", False),
        (-32603, "Connection closed", False),
    ],
)
def test_an_error_is_told_by_its_code_and_its_words(code: int, message: str, expected: bool) -> None:
    assert lost(MCPError(code, message)) is expected


async def test_s3_19_the_predicate_of_a_pattern_does_not_open_the_gate_of_a_destructive_tool(
    client: Client, cache: int, shop: Shop
) -> None:
    script = Script([ToolCallPart("wipe", {"n": 1}), ToolCallPart("pay", {"n": 2})], "done")
    policies = {"*": ToolPolicy(approval=Approval(approvers=["ann"], when=never))}
    async with working(client, shop.app(script.model, policies), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        assert (row["tool"], row["approvers"]) == ("wipe", ["ann"])
        await update(handle, "deny", {"call": row["call"], "by": "ann"})
        await handle.result()
    assert shop.ran == ["pay 2"]


async def test_s3_19_the_predicate_of_a_tools_own_policy_is_the_last_word(client: Client, shop: Shop) -> None:
    script = Script({"wipe": {"n": 1}}, "done")
    policies = {"wipe": ToolPolicy(approval=Approval(when=never))}
    async with working(client, shop.app(script.model, policies)) as runs:
        assert (await runs.run("shop", "go"))["output"] == "done"
    assert shop.ran == ["wipe 1"]


async def test_s3_19_a_tool_that_is_gone_is_named_as_the_model_knows_it(client: Client, shop: Shop) -> None:
    script = Script({"crm_change": {"tell": False}}, {"crm_pay": {"n": 1}}, "done")
    agent = Agent(script.model, name="shop", toolsets=[shop.server(ttl=3600).prefixed("crm")])
    async with working(client, App(agents=[DurableAgent(agent)])) as runs:
        handle = await runs.start("shop", "go")
        await handle.result()
        assert (await texts(handle))[-1] == "The tool 'crm_pay' is gone: the MCP server 'shop' no longer has it."


async def test_s3_19_a_list_is_made_anew_only_where_an_error_says_that_the_tool_is_gone(
    client: Client, shop: Shop
) -> None:
    script = Script({"fail": {}}, "done")
    app = shop.app(script.model, ttl=3600)
    async with working(client, app) as runs:
        handle = await runs.start("shop", "go")
        await handle.result()
        (text,) = await texts(handle)
    assert "no such customer" in text
    assert [part.changes for part in app.agents["shop"].agent.toolsets if isinstance(part, MCPServer)] == [0]
