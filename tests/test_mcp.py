"""Tools of MCP servers over stdio and HTTP: what holds while the server does what it should."""

from __future__ import annotations

from typing import Any

import pytest
from fastmcp.client import Client as MCPClient
from pydantic_ai import Agent
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.test import TestModel
from temporalio.client import Client

from perdure import App, Approval, DurableAgent, ToolPolicy
from perdure.cli.declared import describe_agent
from perdure.errors import DeclarationError
from perdure.toolsets.mcp import MCPServer
from tests.deciding import answers, pending, update
from tests.harness import activities, until, working
from tests.mcp_servers import Shop, either_way, lives
from tests.reading import planned
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed

shop = either_way


def changes(app: App) -> int:
    """How often the app's server was known to have changed its tools."""
    return next(part for part in app.agents["shop"].agent.toolsets if isinstance(part, MCPServer)).changes


def names(script: Script, request: int) -> list[str]:
    """The tools that the model was shown in a request."""
    return sorted(tool.name for tool in script.infos[request].function_tools)


async def test_s3_19_tools_of_a_server_are_listed_in_the_request_and_called_as_activities(
    client: Client, cache: int, shop: Shop
) -> None:
    script = Script([ToolCallPart("look", {"n": 1}), ToolCallPart("pay", {"n": 2})], {"look": {"n": 3}}, "done")
    async with working(client, shop.app(script.model), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        assert (await handle.result())["output"] == "done"
        assert [text for _, text in (await answers(handle)).values()] == ["saw 1", "paid 2", "saw 3"]
        done = await activities(handle)
        assert sorted(done) == sorted([*["model_request"] * 3, "tool:look", "tool:pay", "tool:look"])
    assert sorted(shop.ran) == ["look 1", "look 3", "pay 2"]
    assert "pay" in names(script, 0)
    assert len([line for line in shop.lines if line.startswith("start ")]) == 1, "one connection for the worker's life"
    if shop.kind == "stdio":
        await until(lambda: not lives(shop.pid))


async def test_s0_09_a_list_is_used_for_its_time_to_live(client: Client, shop: Shop) -> None:
    script = Script({"change": {"tell": False}}, {"look": {"n": 1}}, "done")
    async with working(client, shop.app(script.model, ttl=3600)) as runs:
        assert (await runs.run("shop", "go"))["output"] == "done"
    assert "pay" in names(script, 2)
    assert "gift" not in names(script, 2)


async def test_s0_09_without_a_time_to_live_each_request_lists_anew(client: Client, cache: int, shop: Shop) -> None:
    script = Script({"change": {"tell": False}}, {"gift": {"n": 1}}, "done")
    async with working(client, shop.app(script.model, ttl=0), cache=cache) as runs:
        assert (await runs.run("shop", "go"))["output"] == "done"
    assert "pay" in names(script, 0)
    assert "pay" not in names(script, 1)
    assert shop.ran == ["change", "gift 1"]


async def test_s0_09_a_change_that_the_server_tells_of_is_noticed(client: Client, cache: int, shop: Shop) -> None:
    script = Script({"change": {"tell": True}}, "first", {"gift": {"n": 1}}, "done")
    app = shop.app(script.model, ttl=3600)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("shop", **SESSION)
        await answered(handle, "change it")
        await until(lambda: changes(app) > 0)
        assert await answered(handle, "go on") == "done"
        await closed(handle)
    assert "pay" not in names(script, 2)
    assert shop.ran == ["change", "gift 1"]


async def test_s3_19_a_destructive_tool_waits_for_an_approval(client: Client, cache: int, shop: Shop) -> None:
    script = Script({"wipe": {"n": 1}}, "done")
    async with working(client, shop.app(script.model), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        assert (row["tool"], row["rule"], shop.ran) == ("wipe", "destructiveHint", [])
        await update(handle, "approve", {"call": row["call"], "by": "ann"})
        assert (await handle.result())["output"] == "done"
    assert shop.ran == ["wipe 1"]


@pytest.mark.parametrize("trusted", [False, True], ids=["claimed", "trusted"])
async def test_s3_19_claims_make_a_call_safe_only_where_the_server_is_trusted(
    client: Client, shop: Shop, trusted: bool
) -> None:
    script = Script([ToolCallPart(name, {"n": 1}) for name in ("look", "put", "pay", "wipe")], "done")
    policies = {"wipe": ToolPolicy(effect="idempotent"), "l??k": ToolPolicy(timeout=60)}
    async with working(client, shop.app(script.model, policies, trust_annotations=trusted)) as runs:
        handle = await runs.start("shop", "go")
        assert (await handle.result())["output"] == "done"
        effects = {call.tool: call.options.effect for call in await planned(handle)}
    put = "idempotent" if trusted else "unsafe"
    assert effects == {"look": "unsafe", "put": put, "pay": "unsafe", "wipe": "idempotent"}


async def test_s3_19_a_pattern_of_policies_does_not_open_the_gate(client: Client, shop: Shop) -> None:
    script = Script([ToolCallPart("look", {"n": 1}), ToolCallPart("wipe", {"n": 2})], "done")
    policies = {"w*": ToolPolicy(effect="safe")}
    async with working(client, shop.app(script.model, policies, trust_annotations=True)) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        assert {call.tool: call.options.effect for call in await planned(handle)} == {"look": "safe", "wipe": "safe"}
        await update(handle, "deny", {"call": row["call"], "by": "ann"})
        await handle.result()
    assert shop.ran == ["look 1"]


def test_s3_19_checking_an_app_connects_to_nothing() -> None:
    server = MCPServer("http://127.0.0.1:9/mcp", id="nowhere")
    app = App(agents=[DurableAgent(Agent(TestModel(), name="shop", toolsets=[server.prefixed("far")]))])
    described = describe_agent(app.agents["shop"])
    assert (described["tools"], described["all_tools_known"]) == ([], False)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"id": ""}, "needs an id"),
        ({"sampling_model": TestModel()}, "no limit of the run would count them"),
        ({"cache_tools": True}, "ttl="),
        ({"headers": dict[str, str]}, "use MCPToolset itself"),
        ({"headers": "Bearer key"}, "id='crm'.*must be a mapping.*not of type str$"),
        ({"headers": {"Authorization": None}}, "'Authorization' is of type NoneType$"),
        ({"headers": {"Authorization": "Bearer key\n"}}, "the header 'Authorization' has a line break.*may: strip"),
        ({"ttl": float("inf")}, "finite"),
        ({"connect_timeout": 0}, "finite"),
        ({"ttl": "x"}, "id='crm'.*ttl='x'"),
        ({"read_timout": 60}, "id='crm'.*read_timout"),
        ({"source": "nofile.xyz"}, "id='crm'.*nofile"),
        ({"max_sessions": 0}, "at least 1"),
    ],
)
def test_s3_19_what_can_be_wrong_is_said_when_it_is_built(options: dict[str, Any], text: str) -> None:
    options.setdefault("id", "crm")
    with pytest.raises(DeclarationError, match=text):
        MCPServer(options.pop("source", "http://127.0.0.1:9/mcp"), **options)


def test_s3_19_a_client_is_given_as_a_function() -> None:
    with pytest.raises(DeclarationError, match="a function that makes the client"):
        MCPServer(MCPClient("http://127.0.0.1:9/mcp"), id="crm")


async def test_s2_type_05_calls_of_a_server_wait_where_hosted_ones_could_not(
    client: Client, cache: int, shop: Shop
) -> None:
    script = Script([ToolCallPart("look", {"n": 1}), ToolCallPart("pay", {"n": 2})], "done")
    policies = {"pay": ToolPolicy(approval=Approval(approvers=["ann"]))}
    async with working(client, shop.app(script.model, policies), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        assert (row["tool"], row["args"]) == ("pay", {"n": 2})
        await until(lambda: shop.ran == ["look 1"])
        await update(handle, "deny", {"call": row["call"], "by": "ann", "reason": "no"})
        assert (await handle.result())["output"] == "done"
    assert shop.ran == ["look 1"]
