"""MCP servers that crash, hang, are gone, change, or answer with too much: the outcomes of docs/mcp.md."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from fastmcp.client import Client as MCPClient
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import App, Approval, DurableAgent, ToolPolicy
from perdure.contracts import MAY_HAVE_RUN
from perdure.toolsets.mcp import MCPServer
from tests.deciding import pending, texts, update
from tests.harness import until, working
from tests.mcp_servers import Shop, either_way, lives, opened
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed

shop = either_way


async def test_s3_19_killed_in_the_middle_of_a_call_the_model_is_told_that_it_may_have_run(
    client: Client, cache: int, shop: Shop
) -> None:
    script = Script({"die": {"n": 1}}, "sorry", {"look": {"n": 2}}, "done")
    async with working(client, shop.app(script.model), cache=cache) as runs:
        handle = await runs.start("shop", **SESSION)
        assert await answered(handle, "die") == "sorry"
        assert await texts(handle) == [f"The MCP server 'shop' was lost before it answered. {MAY_HAVE_RUN}"]
        await shop.start()
        assert await answered(handle, "look") == "done"
        assert (await texts(handle))[-1] == "saw 2"
        await closed(handle)
    assert shop.ran == ["die 1", "look 2"]


async def test_s3_19_an_idempotent_call_is_repeated_on_a_new_connection(client: Client, cache: int, shop: Shop) -> None:
    script = Script({"put": {"n": 1}}, "done")
    policies = {"put": ToolPolicy(effect="idempotent")}
    async with working(client, shop.app(script.model, policies), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        await until(lambda: shop.ran == ["put 1"])
        if shop.process is not None:
            await shop.process.wait()
            await shop.start()
        assert (await handle.result())["output"] == "done"
        assert await texts(handle) == ["put 1"]
    assert shop.ran == ["put 1", "put 1"]


@pytest.mark.parametrize("clock", ["server's", "policy's"])
async def test_s3_19_a_call_that_hangs_ends_in_time(client: Client, cache: int, shop: Shop, clock: str) -> None:
    script = Script({"hang": {"n": 1}}, {"look": {"n": 2}}, "done")
    policies = {"hang": ToolPolicy(timeout=3)} if clock == "policy's" else {}
    options = {} if policies else {"read_timeout": 3}
    async with working(client, shop.app(script.model, policies, **options), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        assert (await handle.result())["output"] == "done"
        late = "The call did not end within 3 s." if policies else "The MCP server 'shop' did not answer in time."
        assert await texts(handle) == [f"{late} {MAY_HAVE_RUN}", "saw 2"]
    assert shop.ran == ["hang 1", "look 2"]


async def test_s3_19_a_server_that_answers_nothing_any_more_is_started_anew(client: Client, tmp_path: Path) -> None:
    script = Script({"look": {"n": 1}}, "first", {"look": {"n": 2}}, "done")
    async with opened("stdio", tmp_path) as shop, working(client, shop.app(script.model)) as runs:
        handle = await runs.start("shop", **SESSION)
        await answered(handle, "look")
        stopped = shop.pid
        os.kill(stopped, signal.SIGSTOP)
        assert await answered(handle, "look") == "done"
        await closed(handle)
        assert shop.pid != stopped
    assert shop.ran == ["look 1", "look 2"]


async def test_s3_19_five_megabytes_are_too_much_and_the_server_goes_on(client: Client, cache: int, shop: Shop) -> None:
    script = Script({"big": {"size": 5_000_000}}, {"look": {"n": 1}}, "done")
    async with working(client, shop.app(script.model), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        assert (await handle.result())["output"] == "done"
        failed, saw = await texts(handle)
    assert "5000" in failed
    assert saw == "saw 1"
    assert shop.ran == ["big 5000000", "look 1"]


async def test_s3_19_the_older_protocol_over_http_loses_an_answer_of_five_megabytes(
    client: Client, tmp_path: Path
) -> None:
    script = Script({"big": {"size": 5_000_000}}, {"look": {"n": 1}}, "done")
    async with opened("http", tmp_path) as shop:
        app = shop.app(script.model, source=shop.with_handshake)
        async with working(client, app) as runs:
            handle = await runs.start("shop", "go")
            assert (await handle.result())["output"] == "done"
            lost, saw = await texts(handle)
    assert lost == f"The MCP server 'shop' was lost before it answered. {MAY_HAVE_RUN}"
    assert saw == "saw 1"


@pytest.mark.parametrize("tell", [True, False], ids=["told", "silent"])
async def test_s3_19_a_planned_call_whose_tool_is_gone_fails(
    client: Client, cache: int, shop: Shop, tell: bool
) -> None:
    def turns(messages: list[Any], info: Any) -> Any:
        return {messages[0].parts[-1].content: {"tell": tell} if len(messages[0].parts[-1].content) > 3 else {"n": 1}}

    script = Script(turns, "done")
    policies = {"pay": ToolPolicy(approval=Approval())}
    async with working(client, shop.app(script.model, policies, ttl=3600), cache=cache) as runs:
        handle = await runs.start("shop", "pay")
        (row,) = await pending(handle, 1)
        assert (await runs.run("shop", "change"))["output"] == "done"
        await update(handle, "approve", {"call": row["call"], "by": "ann"})
        assert (await handle.result())["output"] == "done"
        (text,) = await texts(handle)
    assert text.startswith("The tool 'pay' is gone: ")
    assert shop.ran == ["change"]


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_s3_19_a_worker_starts_without_the_server_and_finds_it_later(
    client: Client, tmp_path: Path, kind: Any
) -> None:
    script = Script({"look": {"n": 1}}, "done")
    async with opened(kind, tmp_path, started=False) as shop:
        agent = Agent(script.model, name="shop", toolsets=[shop.server()])
        app = App(agents=[DurableAgent(agent, model_attempts=2)])
        async with working(client, app) as runs:
            failure = await runs.failure("shop", "go")
            assert (failure.type, script.requests) == ("ServerUnreachable", [])
            assert failure.message.startswith("The MCP server 'shop' can't be reached")
            await shop.start()
            assert (await runs.run("shop", "go"))["output"] == "done"
    assert shop.ran == ["look 1"]


async def test_s3_19_an_agent_goes_on_without_an_optional_server(client: Client, cache: int, tmp_path: Path) -> None:
    script = Script("done")
    async with opened("http", tmp_path, started=False) as shop:
        async with working(client, shop.app(script.model, optional=True), cache=cache) as runs:
            assert (await runs.run("shop", "go"))["output"] == "done"
    assert script.infos[0].function_tools == []


async def test_s3_19_a_server_that_takes_the_connection_and_says_nothing_holds_nobody_up(client: Client) -> None:
    script = Script("done")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connections are made, nobody reads them
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
        server = MCPServer(url, id="silent", connect_timeout=1, optional=True)
        app = App(agents=[DurableAgent(Agent(script.model, name="shop", toolsets=[server]))])
        async with working(client, app) as runs:
            assert (await runs.run("shop", "go"))["output"] == "done"


async def test_s3_19_a_program_that_says_nothing_is_ended(client: Client, tmp_path: Path) -> None:
    script, note = Script("done"), tmp_path / "pids"
    program = f"import os, time; open({str(note)!r}, 'a').write(f'{{os.getpid()}}\\n'); time.sleep(3600)"
    server = MCPServer(
        lambda: StdioTransport(sys.executable, ["-c", program]), id="mute", connect_timeout=3, optional=True
    )
    app = App(agents=[DurableAgent(Agent(script.model, name="shop", toolsets=[server]))])
    async with working(client, app) as runs:
        assert (await runs.run("shop", "go"))["output"] == "done"
        pids = [int(line) for line in note.read_text().splitlines()]
        assert pids
        await until(lambda: not any(lives(pid) for pid in pids))


async def test_s3_19_down_between_two_calls(client: Client, cache: int, shop: Shop) -> None:
    script = Script({"look": {"n": 1}}, "a", {"pay": {"n": 2}}, "b", {"pay": {"n": 3}}, "c")
    async with working(client, shop.app(script.model, ttl=3600), cache=cache) as runs:
        handle = await runs.start("shop", **SESSION)
        await answered(handle, "look")
        await shop.kill()
        await answered(handle, "pay")
        await shop.start()
        await answered(handle, "pay again")
        told = await texts(handle)
        await closed(handle)
    if shop.kind == "stdio":  # the worker starts it anew
        assert told == ["saw 1", "paid 2", "paid 3"]
        assert shop.ran == ["look 1", "pay 2", "pay 3"]
    else:
        at = f"at http://127.0.0.1:{shop.port} (Connection refused)"
        gone = f"The MCP server 'shop' can't be reached {at}. The call was not run."
        assert told == ["saw 1", gone, "paid 3"]
        assert shop.ran == ["look 1", "pay 3"]


@pytest.mark.parametrize("handshake", [False, True], ids=["modern", "handshake"])
async def test_s3_19_what_a_server_asks_in_the_middle_of_a_call_is_refused(
    client: Client, shop: Shop, handshake: bool
) -> None:
    script = Script({"ask": {}}, {"sample": {}}, "done")
    source = shop.with_handshake if handshake else shop.source
    async with working(client, shop.app(script.model, source=source)) as runs:
        handle = await runs.start("shop", "go")
        assert (await handle.result())["output"] == "done"
        elicited, sampled = await texts(handle)
    assert "asked the user for input in the middle of the call (elicitation), which is not carried" in elicited
    assert sampled == "The MCP server 'shop' asked for a model request (sampling): refused."


async def test_s3_19_a_handler_of_the_app_answers_what_a_server_asks(client: Client, tmp_path: Path) -> None:
    async def ann(message: str, kind: Any, params: Any, context: Any) -> Any:
        return kind(name="Ann")

    script = Script({"ask": {}}, "done")
    async with opened("stdio", tmp_path) as shop:
        app = shop.app(script.model, source=lambda: MCPClient(shop.source(), mode="legacy", elicitation_handler=ann))
        async with working(client, app) as runs:
            handle = await runs.start("shop", "go")
            await handle.result()
            (text,) = await texts(handle)
    assert "Ann" in text


async def test_s3_19_of_pydantic_ais_own_toolset_a_lost_call_is_not_made_again(client: Client, tmp_path: Path) -> None:
    script = Script([ToolCallPart("die", {"n": 1})], "done")
    async with opened("stdio", tmp_path) as shop:
        toolset: MCPToolset[Any] = MCPToolset(shop.source(), id="shop", init_timeout=60)
        app = App(agents=[DurableAgent(Agent(script.model, name="shop", toolsets=[toolset]))])
        async with working(client, app) as runs:
            handle = await runs.start("shop", "go")
            await handle.result()
            assert await texts(handle) == [f"The MCP server was lost before it answered. {MAY_HAVE_RUN}"]
    assert shop.ran == ["die 1"]
