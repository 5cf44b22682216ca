"""A server and worker processes that are killed and started again, while a client goes on as if nothing was."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from temporalio.client import Client
from temporalio.service import RPCError

from perdure.client import ClientError, Refused, RunClosed
from perdure.converter import data_converter
from perdure.dev import server_arguments, temporal_binary
from tests.command import free_port
from tests.harness import until
from tests.sites import rows_of

T = TypeVar("T")


@dataclass
class Place:
    """A server with its state in a file, and the workers of one module."""

    folder: Path
    module: str
    queue: str
    more: tuple[str, ...] = ()
    """Of the server's dynamic configuration."""
    port: int = field(default_factory=free_port)
    server: Process | None = None
    worker: Process | None = None
    workers: int = 0
    """How many were started."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Client]:
        """The server runs, and there is always a worker."""
        client = await self.start_server()
        keeper = asyncio.create_task(self.keep_working())
        try:
            yield client
        finally:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
            for process in (self.worker, self.server):
                await ended(process, signal.SIGKILL)

    async def start_server(self) -> Client:
        """Start it, on the state that there is, and wait until it answers."""
        configuration = [word for value in self.more for word in ("--dynamic-config-value", value)]
        arguments = server_arguments(self.port, None, self.folder / "runs.db")
        with (self.folder / "server.log").open("ab") as log:
            self.server = await asyncio.create_subprocess_exec(
                temporal_binary(), *arguments, *configuration, stdin=DEVNULL, stdout=log, stderr=log
            )
        found: list[Client] = []

        async def answers() -> bool:
            with suppress(RuntimeError):
                found.append(await Client.connect(self.address, data_converter=data_converter()))
            return bool(found)

        await until(answers, seconds=60)
        return found[0]

    async def keep_working(self) -> None:
        """Start a worker whenever there is none."""
        while True:
            with (self.folder / "worker.log").open("ab") as log:
                self.worker = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", self.module, self.address, self.queue, str(self.folder), stderr=log
                )
            self.workers += 1
            await self.worker.wait()

    async def kill_worker(self) -> None:
        """Kill the worker that is there now."""
        await ended(self.worker, signal.SIGKILL)

    async def restart_server(self, how: signal.Signals) -> None:
        """End the server and start it again."""
        await ended(self.server, how)
        await self.start_server()

    def rows(self, name: str) -> list[dict[str, Any]]:
        """What truly happened, in every worker process."""
        return rows_of(self.folder / name)


async def ended(process: Process | None, how: signal.Signals) -> None:
    """End a process, by its own id."""
    if process is not None and process.returncode is None:
        process.send_signal(how)
        await asyncio.wait_for(process.wait(), 30)


async def persistent(call: Callable[[], Awaitable[T]], errors: list[str], seconds: float = 120) -> T:
    """Call again and again until there is an answer, as a careful program would."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                return await call()
            except (RunClosed, Refused):
                raise
            except (ClientError, RPCError) as error:
                errors.append(f"{type(error).__name__}: {error}")
                await asyncio.sleep(0.2)
