"""Workers in processes of their own that are killed, and what they truly did."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import uuid
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.client import Client

from tests.harness import TIMEOUT, Handle, until


@dataclass
class Site:
    """A queue and a folder that workers of one module share."""

    client: Client
    folder: Path
    queue: str
    module: str = "tests.crash_app"
    agent: str = "crash"

    @asynccontextmanager
    async def worker(self, grace: float = 30) -> AsyncGenerator[Process]:
        """A worker process that polls; killed at the end of the block if it is still there."""
        address = self.client.service_client.config.target_host
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", self.module, address, self.queue, str(self.folder), str(grace)
        )
        try:
            await until(lambda: (self.folder / f"ready-{process.pid}").exists(), seconds=60)
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def start(self, prompt: str, *, timeout: timedelta = TIMEOUT, **request: Any) -> Handle:
        return await self.client.start_workflow(
            "AgentWorkflow",
            {"agent": self.agent, "prompt": prompt, **request},
            id=f"crash-{uuid.uuid4().hex[:12]}",
            task_queue=self.queue,
            execution_timeout=timeout,
        )

    def rows(self, name: str) -> list[dict[str, Any]]:
        """What truly happened, in every worker process."""
        return rows_of(self.folder / name)

    def release(self) -> None:
        """Let everything that is held go on."""
        (self.folder / "go").touch()


def rows_of(file: Path) -> list[dict[str, Any]]:
    """The lines of JSON that worker processes wrote to a file, if any did."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def stopped(process: Process, how: signal.Signals) -> None:
    """Send a signal to a process, and wait for its end."""
    process.send_signal(how)
    await asyncio.wait_for(process.wait(), 60)
