"""Tools of MCP servers over stdio and HTTP: what holds while the server does what it should."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.test import TestModel
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy
from perdure.cli.declared import describe_agent
from perdure.errors import DeclarationError
from perdure.toolsets.mcp import MCPServer
from tests.harness import activities, until, working
from tests.mcp_servers import Shop, opened
from tests.scripts import Script
from tests.test_approvals import answers, pending, update


@pytest.fixture(params=["stdio", "http"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Shop]:
    """A server that is there while the test runs."""
    async with opened(request.param, tmp_path) as started:
        yield started


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


@pytest.mark.parametrize("handshake", [False, True], ids=["modern", "handshake"])
async def test_s0_09_a_change_that_the_server_tells_of_is_noticed(client: Client, shop: Shop, handshake: bool) -> None:
    if handshake and shop.kind == "stdio":
        pytest.skip("a client that was built elsewhere doesn't pass on what it is told: see docs/mcp.md")
    script = Script({"change": {"tell": True}}, "first", {"gift": {"n": 1}}, "done")
    app = shop.app(script.model, ttl=3600)
    toolset: Any = app.agents["shop"].agent.toolsets[-1]
    async with working(client, app) as runs:
        handle = await runs.start("shop", "go", session=True)
        await until(lambda: len(script.infos) == 2)
        await until(lambda: toolset._until == 0.0 or "gift" in names(script, 1))
        await update(handle, "send", {"message": "go on"})
        await until(lambda: len(script.infos) == 4)
        await update(handle, "close", {})
        await handle.result()
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
    effects: dict[str, str] = {}
    async with working(client, shop.app(script.model, policies, trust_annotations=trusted)) as runs:
        handle = await runs.start("shop", "go")
        assert (await handle.result())["output"] == "done"
        page = await handle.query("transcript", {})
        for call in [call for entry in page["entries"] for call in entry.get("calls", [])]:
            effects[call["tool"]] = call.get("options", {}).get("effect", "unsafe")
    assert effects == {}
