"""Real MCP servers for tests, over stdio and over HTTP, on free loopback ports, stopped by their own process ids."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from fastmcp.client import Client as MCPClient
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.models import Model

from perdure import App, DurableAgent, ToolPolicy
from perdure.toolsets.mcp import MCPServer
from tests.command import free_port, listens
from tests.harness import until

HERE = Path(__file__).parent
Kind = Literal["stdio", "http"]


@dataclass
class Shop:
    """The server `shop.py`, or another here: how to reach it, what it has run, and what is done to it."""

    kind: Kind
    journal: Path
    port: int = field(default_factory=free_port)
    process: asyncio.subprocess.Process | None = None
    program: str = "shop.py"

    def server(self, **options: Any) -> MCPServer:
        """A toolset for it."""
        options.setdefault("connect_timeout", 60.0)
        return MCPServer(options.pop("source", self.source), id="shop", **options)

    def source(self) -> Any:
        """Where it is, made anew for each connection."""
        if self.kind == "http":
            return f"http://127.0.0.1:{self.port}/mcp"
        return StdioTransport(sys.executable, [str(self.script), "stdio", str(self.journal)])

    @property
    def script(self) -> Path:
        """The server's program, which is there once it was started first."""
        return self.journal.with_name(self.program)

    @property
    def pid(self) -> int:
        """The process id of the server that was started last."""
        return int(next(line for line in reversed(self.lines) if line.startswith("start ")).split()[1])

    def with_handshake(self) -> Any:
        """A client that speaks the older protocol, which has sessions and tells of changes by itself."""
        return MCPClient(self.source(), mode="legacy", timeout=300)

    def app(self, model: Model, policies: dict[str, ToolPolicy] | None = None, **options: Any) -> App:
        """An app of one agent with the server's tools."""
        agent = Agent(model, name="shop", toolsets=[self.server(**options)])
        return App(agents=[DurableAgent(agent, policies=policies or {})])

    @property
    def ran(self) -> list[str]:
        """What has truly run, in order."""
        return [line for line in self.lines if not line.startswith("start ")]

    @property
    def lines(self) -> list[str]:
        """All of the journal: also each start of the server, with its process id."""
        return self.journal.read_text().splitlines()

    async def start(self) -> None:
        """Start the HTTP server, which nobody else does; one over stdio is started by who connects, from now on."""
        self.script.write_text((HERE / self.program).read_text())
        if self.kind == "http":
            arguments = (sys.executable, str(self.script), "http", str(self.journal), str(self.port))
            self.process = await asyncio.create_subprocess_exec(*arguments)
            await until(lambda: listens(self.port), seconds=60)

    async def kill(self) -> None:
        """Kill the server that was started last, and wait until it is gone."""
        pid = self.pid
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if self.process is not None:
            await self.process.wait()
            self.process = None
        await until(lambda: not lives(pid))


def lives(pid: int) -> bool:
    """Whether the process runs; one that has ended and that nobody has waited for doesn't."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@asynccontextmanager
async def opened(kind: Kind, folder: Path, *, started: bool = True, program: str = "shop.py") -> AsyncGenerator[Shop]:
    """A server that is there while the block runs, or once it is started in it."""
    journal = folder / "journal.txt"
    journal.touch()
    shop = Shop(kind, journal, program=program)
    if started:
        await shop.start()
    try:
        yield shop
    finally:
        if shop.process is not None:
            await shop.kill()


@pytest.fixture(params=["stdio", "http"])
async def either_way(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Shop]:
    """A server that is there while the test runs."""
    async with opened(request.param, tmp_path) as started:
        yield started


@pytest.fixture
async def over_stdio(tmp_path: Path) -> AsyncGenerator[Shop]:
    """A server over stdio: all calls go through one connection, and what it remembers is its process's."""
    async with opened("stdio", tmp_path) as started:
        yield started
