"""An MCP server that can't be reached: the error says where it was looked for and why, without any secret."""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
from fastmcp.client import Client as MCPClient
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy
from perdure.client import PerdureClient
from perdure.errors import ServerUnreachable
from perdure.toolsets.mcp import MCPServer
from perdure.toolsets.reasons import reason_of
from tests.command import free_port
from tests.deciding import texts
from tests.harness import working
from tests.mcp_servers import opened
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed, send

SECRET = "hunter2"


async def unreachable(source: Any) -> str:
    """What is said of a server that can't be reached."""
    server = MCPServer(source, id="crm", connect_timeout=20)
    with pytest.raises(ServerUnreachable) as raised:
        await server._connection.ready()  # pyright: ignore[reportPrivateUsage]
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None
    return str(raised.value)


async def test_the_address_and_the_reason_without_credentials_path_and_query() -> None:
    port = free_port()
    url = f"http://ann:{SECRET}@127.0.0.1:{port}/{SECRET}/mcp?key={SECRET}"
    at = f"The MCP server 'crm' can't be reached at http://127.0.0.1:{port} (Connection refused)."
    assert await unreachable(url) == at
    assert await unreachable(lambda: MCPClient(url)) == at


async def test_a_host_that_nobody_knows() -> None:
    said = await unreachable(f"https://crm.invalid/{SECRET}")
    assert said == "The MCP server 'crm' can't be reached at https://crm.invalid (the name of the host is not known)."


async def test_a_program_that_is_not_there_and_its_arguments() -> None:
    said = await unreachable(StdioTransport("/no/such/program", ["--key", SECRET]))
    assert said == "The MCP server 'crm' can't be reached at /no/such/program (No such file or directory)."


async def test_a_script_is_named(tmp_path: Path) -> None:
    script = tmp_path / "files.py"
    script.write_text("raise SystemExit(1)")
    said = await unreachable(StdioTransport(sys.executable, [str(script), SECRET]))
    assert said.startswith(f"The MCP server 'crm' can't be reached at {sys.executable} {script} (")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("401", "it answers with an HTTP error: are `headers` and `auth` right?"),
        ("404", "it answers with HTTP 404: is the path right?"),
        ("200", "its answer isn't one of MCP: is the URL right?"),
    ],
)
async def test_what_answers_in_its_place_and_not_its_text(status: str, words: str) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status} {SECRET}\r\ncontent-length: 7\r\ncontent-type: text/html\r\nconnection: close"
        writer.write(f"{head}\r\n\r\n{SECRET}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        said = await unreachable(f"http://127.0.0.1:{port}/mcp?key={SECRET}")
    assert said == f"The MCP server 'crm' can't be reached at http://127.0.0.1:{port} ({words})."


def test_reasons_hold_no_text_of_an_exception() -> None:
    around = RuntimeError(SECRET)
    around.__cause__ = ValueError(SECRET)
    around.__cause__.__context__ = around
    assert reason_of(around) == "ValueError"
    assert reason_of(ExceptionGroup(SECRET, [ConnectionResetError(104, SECRET)])) == "Connection reset by peer"
    assert reason_of(TimeoutError(SECRET)) == "no answer in time"
    assert reason_of(socket.gaierror(-2, SECRET)) == "the name of the host is not known"
    assert reason_of(ssl.SSLError(1, SECRET)) == "TLS"


async def test_who_follows_a_run_sees_what_it_waits_for(client: Client) -> None:
    url = f"http://127.0.0.1:{free_port()}/mcp"
    agent = Agent(Script("done").model, name="clerk", toolsets=[MCPServer(url, id="crm")])
    async with working(client, App(agents=[DurableAgent(agent, model_attempts=3)])) as runs:
        handle = await runs.start("clerk", "go")
        run = PerdureClient(client).run(handle.id)
        whys = [progress.why async for progress in run.follow()]
    assert f"can't be reached at {url.removesuffix('/mcp')} (Connection refused)." in next(filter(None, whys))
    assert {why for why in whys if why} == {next(filter(None, whys))}
    assert whys[-1] == ""


async def test_who_follows_a_run_sees_why_a_call_is_tried_again(client: Client, tmp_path: Path) -> None:
    script = Script({"look": {"n": 1}}, "a", {"look": {"n": 2}}, "b")
    policies = {"look": ToolPolicy(effect="safe", attempts=100)}
    async with opened("http", tmp_path) as shop, working(client, shop.app(script.model, policies, ttl=3600)) as runs:
        handle = await runs.start("shop", **SESSION)
        await answered(handle, "look")
        await shop.kill()
        await send(handle, "look again")
        whys = (progress.why async for progress in PerdureClient(client).run(handle.id).follow() if progress.why)
        at = f"at http://127.0.0.1:{shop.port} (Connection refused)"
        why = f"ServerUnreachable: The MCP server 'shop' can't be reached {at}."
        assert await anext(whys) == f"tool:look is tried again: {why}"
        await whys.aclose()
        await shop.start()
        await closed(handle)
        assert await texts(handle) == ["saw 1", "saw 2"]
