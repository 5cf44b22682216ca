"""The worker of the demo, in a process of its own that can be killed."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from .demo_terminal import say

PACE = {"PERDURE_SUPPORT_DELAY": "0.2", "PERDURE_SUPPORT_TOOL_DELAY": "0.8"}
"""Seconds of a model request and of a tool call, so that one can watch. The environment may say otherwise."""


class WorkerProcess:
    """`perdure worker` in a process of its own."""

    def __init__(self, address: str, database: Path, model: str | None) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
        own = {"TEMPORAL_ADDRESS": address, "PERDURE_SUPPORT_DB": str(database)}
        self._environment = PACE | inherited | own | ({"PERDURE_SUPPORT_MODEL": model} if model else {})
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the worker and wait until it polls. Ends the demo with what the worker said where it doesn't."""
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "perdure.cli", "worker", "examples.support.app:app", "--grace", "1"),
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        said: list[str] = []
        while line := (await process.stderr.readline()).decode().strip():
            said.append(line)
            if "worker polls" in line:
                say(f"  worker {process.pid}: {line}")
                return
        raise SystemExit("\n".join(["the worker didn't start:", *said]))

    async def end(self, how: signal.Signals) -> None:
        """Send a signal and wait until the process is gone."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):  # it ended by itself just now
                self._process.send_signal(how)
            await self._process.communicate()
            say(f"  worker {self._process.pid}: ended by {how.name}")
