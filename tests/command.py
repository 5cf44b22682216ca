"""The real `perdure` command as a process of its own."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
import socket
import sys
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client

ROOT = Path(__file__).parent.parent
SECONDS = 60.0
FIRST = 10_000 + 2_000 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw9").removeprefix("gw"))
PORTS = itertools.cycle(range(FIRST, FIRST + 1_000))
DEMO = "perdure.cli.demo_app:app"
NOT_INHERITED = ("TEMPORAL_", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "PYTHONDEVMODE", "PYTHONWARNINGS")
"""What in the environment of a machine changes where a command goes, or what it prints."""
LOGGED = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ [A-Z]+ \S+: ")
"""A line of the log. The SDK's own come from another thread, also after what the command said last."""


@dataclass(frozen=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def last(self) -> str:
        """The last line of standard error that isn't of the log."""
        return [line for line in self.err.splitlines() if not LOGGED.match(line)][-1]


class Command:
    """A command that runs: its standard error is read line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def line(self, containing: str) -> str:
        """Wait for a line of standard error."""
        assert self.process.stderr
        async with asyncio.timeout(SECONDS):
            while raw := await self.process.stderr.readline():
                self.lines.append(raw.decode().rstrip())
                if containing in self.lines[-1]:
                    return self.lines[-1]
        raise AssertionError(f"no line with {containing!r} in {self.lines}")

    def send(self, number: signal.Signals) -> None:
        """Send a signal to this process."""
        self.process.send_signal(number)

    async def end(self) -> Done:
        """Wait for the end."""
        async with asyncio.timeout(SECONDS):
            out, err = await self.process.communicate()
        code = self.process.returncode
        assert code is not None
        return Done(code, out.decode(), "\n".join([*self.lines, err.decode().rstrip()]))


@asynccontextmanager
async def running(
    *args: str, address: str = "", cwd: Path = ROOT, stdin: int = asyncio.subprocess.DEVNULL, **env: str
) -> AsyncGenerator[Command]:
    """`perdure` with these arguments. Killed, by its own process id, if it still runs after the block."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)}
    added = {"PYTHONUNBUFFERED": "1", "COLUMNS": "200"} | ({"TEMPORAL_ADDRESS": address} if address else {}) | env
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "perdure.cli",
        *args,
        cwd=cwd,
        env=inherited | added,
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    command = Command(process)
    try:
        yield command
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def perdure(*args: str, address: str = "", cwd: Path = ROOT, **env: str) -> Done:
    """Run a command to its end."""
    async with running(*args, address=address, cwd=cwd, stdin=asyncio.subprocess.DEVNULL, **env) as command:
        return await command.end()


async def python(*arguments: str) -> tuple[int, str]:
    """Exit code and standard error of a Python process of its own, in which warnings are errors."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", *arguments, stderr=asyncio.subprocess.PIPE
    )
    _, error = await process.communicate()
    return process.returncode or 0, error.decode()


def address_of(client: Client) -> str:
    """Where the server of a client is."""
    return client.service_client.config.target_host


def new_id() -> str:
    """An id that no run has."""
    return f"cli-{uuid.uuid4().hex[:8]}"


def free_port() -> int:
    """A port that nobody listens on, and that neither another process of tests takes meanwhile nor the kernel for a
    connection: it takes those from 32768 on. The thousandth after it, for a Web UI, is free as well."""
    while True:
        port = next(PORTS)
        with socket.socket() as probe, socket.socket() as beside:
            try:
                probe.bind(("127.0.0.1", port))
                beside.bind(("127.0.0.1", port + 1000))
            except OSError:
                continue
        return port


def listens(port: int) -> bool:
    """Whether somebody listens on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
