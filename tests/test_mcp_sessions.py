"""Servers that remember: each run has a session of its own, on one worker, and is told when it is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from fastmcp.client.transports import StdioTransport
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure.converter import data_converter
from perdure.errors import DeclarationError
from perdure.toolsets.mcp import MCPServer
from tests.harness import working
from tests.mcp_servers import Shop, opened
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed, runs_of
from tests.test_mcp_faults import texts

LOST = (
    "The session with the MCP server 'shop' was lost, and what earlier calls had set up in it. A new one is open: "
    "begin again there. This call was not run."
)


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Shop]:
    """A server over stdio: what it remembers is its process's."""
    async with opened("stdio", tmp_path) as started:
        yield started


async def test_s3_19_the_calls_of_a_run_are_one_session_whichever_workers_there_are(
    client: Client, cache: int, shop: Shop
) -> None:
    script = Script([ToolCallPart("count", {}), ToolCallPart("count", {})], {"count": {}}, {"count": {}}, "done")
    async with working(client, shop.app(script.model, per_run=True), cache=cache) as runs:
        second = shop.app(script.model, per_run=True)
        other = await Client.connect(client.service_client.config.target_host, data_converter=data_converter())
        async with working(other, second, cache=cache, task_queue=runs.task_queue):
            handles = [await runs.start("shop", "go") for _ in range(2)]
            for handle in handles:
                assert (await handle.result())["output"] == "done"
                assert await texts(handle) == ["1", "2", "3", "4"]


async def test_s3_19_a_session_that_went_with_its_worker_is_told_of_and_made_anew(
    client: Client, cache: int, shop: Shop
) -> None:
    script = Script({"count": {}}, "a", {"count": {}}, {"count": {}}, "b")
    async with working(client, shop.app(script.model, per_run=True), cache=cache, check=False) as runs:
        handle = await runs.start("shop", **SESSION)
        await answered(handle, "count")
    app = shop.app(script.model, per_run=True)
    async with working(client, app, cache=cache, task_queue=runs.task_queue) as more:
        more.handles.append(handle)
        assert await answered(handle, "count") == "b"
        assert await texts(handle) == ["1", LOST, "1"]
        await closed(handle)
    assert shop.ran == ["count 1", "count 1"]


async def test_s3_19_a_session_that_went_with_its_server_is_told_of(client: Client, shop: Shop) -> None:
    script = Script({"count": {}}, "a", {"count": {}}, {"count": {}}, "b")
    async with working(client, shop.app(script.model, per_run=True)) as runs:
        handle = await runs.start("shop", **SESSION)
        await answered(handle, "count")
        await shop.kill()
        assert await answered(handle, "count") == "b"
        assert await texts(handle) == ["1", LOST, "1"]
        await closed(handle)


async def test_s3_19_a_session_goes_on_where_the_run_continues_as_new(rolling_client: Client, shop: Shop) -> None:
    script = Script(*[turn for _ in range(4) for turn in ({"count": {}}, "a")])
    async with working(rolling_client, shop.app(script.model, per_run=True)) as runs:
        handle = await runs.start("shop", **SESSION)
        for _ in range(4):
            await answered(handle, "count")
        assert await texts(handle) == ["1", "2", "3", "4"]
        assert await runs_of(handle) > 1
        await closed(handle)


def test_s3_19_a_transport_can_not_be_shared_by_sessions() -> None:
    with pytest.raises(DeclarationError, match="a function that makes the transport"):
        MCPServer(StdioTransport("python", []), id="crm", per_run=True)
