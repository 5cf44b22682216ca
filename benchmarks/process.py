"""A worker in a process of its own, and the memory it holds."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager


@asynccontextmanager
async def worker_process(
    *arguments: str, environment: Mapping[str, str] | None = None, ended_by: signal.Signals = signal.SIGKILL
) -> AsyncGenerator[int]:
    """`python <arguments>` while the block runs; yields its process id. It is killed, not asked to finish anything,
    unless another signal is to end it."""
    env = os.environ | dict(environment or {})
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=sys.stderr, env=env)
    try:
        yield process.pid
    finally:
        process.send_signal(ended_by)
        await process.wait()


def resident(pid: int) -> int:
    """The resident set of a process, in bytes."""
    done = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024
