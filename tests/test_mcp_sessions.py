"""Servers that remember: each run has a session of its own, on one worker, and is told when it is lost."""

from __future__ import annotations

from typing import Any

import pytest
from fastmcp.client.transports import StdioTransport
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure.converter import data_converter
from perdure.errors import DeclarationError
from perdure.toolsets import mcp_sessions
from perdure.toolsets.mcp import MCPServer
from tests.deciding import texts
from tests.harness import until, working
from tests.mcp_servers import Shop, lives, over_stdio
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed, runs_of

LOST = (
    "The session with the MCP server 'shop' was lost, and with it what earlier calls had set up. A new one is open, in "
    "which this call was not run: begin again there."
)


shop = over_stdio


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
    turns: list[Any] = [{"count": {}}, "a"] * 4
    script = Script(*turns)
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


async def test_s3_19_a_session_without_a_call_ends_by_itself(
    client: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_sessions, "IDLE", 0.2)
    script = Script({"count": {}}, "a", {"count": {}}, {"count": {}}, "b")
    async with working(client, shop.app(script.model, per_run=True)) as runs:
        handle = await runs.start("shop", **SESSION)
        await answered(handle, "count")
        await until(lambda: not lives(shop.pid))
        monkeypatch.undo()
        assert await answered(handle, "count") == "b"
        assert await texts(handle) == ["1", LOST, "1"]
        await closed(handle)


async def test_s3_19_one_session_more_than_a_worker_holds_ends_the_one_that_is_longest_idle(
    client: Client, shop: Shop
) -> None:
    script = Script({"count": {}}, "a", {"count": {}}, "b")
    async with working(client, shop.app(script.model, per_run=True, max_sessions=1)) as runs:
        first = await runs.start("shop", **SESSION)
        await answered(first, "count")
        ended = shop.pid
        second = await runs.start("shop", "go")
        assert (await second.result())["output"] == "a"
        assert await texts(second) == ["1"]
        await until(lambda: not lives(ended))
        await answered(first, "count")
        assert await texts(first) == ["1", LOST]
        await closed(first)


async def test_s3_19_where_all_sessions_are_in_use_a_call_is_not_run(client: Client, shop: Shop) -> None:
    def turns(messages: list[Any], info: Any) -> Any:
        return {messages[0].parts[-1].content: {"n": 1}}

    script = Script(turns, "done")
    async with working(client, shop.app(script.model, per_run=True, max_sessions=1)) as runs:
        first = await runs.start("shop", "block")
        await until(lambda: shop.ran == ["block 1"])
        second = await runs.start("shop", "pay")
        await second.result()
        full = "The MCP server 'shop' has 1 sessions on this worker, all of them in use."
        assert await texts(second) == [f"{full} The call was not run."]
        shop.journal.with_name("go").touch()
        await first.result()
        assert await texts(first) == ["went 1"]
    assert shop.ran == ["block 1"]
