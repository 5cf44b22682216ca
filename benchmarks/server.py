"""A Temporal dev server for the length of a benchmark."""

import os
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from temporalio.testing import WorkflowEnvironment

FAST = [
    argument
    for setting in (
        "history.transferProcessorMaxPollRPS=200",
        "history.timerProcessorMaxPollRPS=200",
        'history.timerProcessorMaxTimeShift="20ms"',
    )
    for argument in ("--dynamic-config-value", setting)
]
"""Without these the dev server's own waits (50 ms a task) would hide everything else."""


@asynccontextmanager
async def server() -> AsyncGenerator[str]:
    """A dev server of our own on loopback, stopped in the end; yields its address.

    While it runs, whatever this process writes to stdout goes to stderr.
    """
    with _stdout_is_stderr():
        environment = await WorkflowEnvironment.start_local(  # pyright: ignore[reportUnknownMemberType]
            dev_server_existing_path=str(Path(sys.executable).with_name("temporal")),
            dev_server_extra_args=FAST,
            dev_server_log_level="error",
        )
        async with environment:
            yield environment.client.service_client.config.target_host


@contextmanager
def _stdout_is_stderr() -> Generator[None]:
    # The server's banner and the log of Temporal's Rust core go to file descriptor 1; ours is for the table.
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)
