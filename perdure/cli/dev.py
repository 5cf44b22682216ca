"""`perdure dev`: a Temporal server with its Web UI, and a worker, in one command."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.cli.connecting import keep_stdout
from perdure.cli.exits import one_line_errors
from perdure.cli.options import TARGET_HELP, TaskQueue
from perdure.cli.worker import load, say, serve, stopping

if TYPE_CHECKING:
    from perdure import App

EXAMPLE = ("examples/support/app.py", "examples.support.app:app")
"""The example of a checkout: its file under the current folder, and its App."""
DEMO = "perdure.cli.demo_app:app"
PROMPTS = {
    "demo": "What is 17 * 23, and what time is it in Asia/Tokyo?",
    "support": "Please refund the headphones of ada@example.com.",
}
"""What to ask the agents that come with perdure."""


def dev(
    target: Annotated[
        str | None, typer.Argument(metavar="[MODULE:APP]", help=f"{TARGET_HELP} Default: a demo.", show_default=False)
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The server's port on 127.0.0.1.")] = 7233,
    ui_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The Web UI's port. Default: 1000 above --port.")
    ] = None,
    db: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep runs in this file over restarts.")] = None,
    headless: Annotated[bool, typer.Option("--headless", help="No Web UI.")] = False,
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Only the server and its Web UI.")] = False,
    task_queue: TaskQueue = None,
) -> None:
    """Start a Temporal server for development, its Web UI and a worker. Ctrl-C stops all. No key and no network."""
    if no_worker and (target or task_queue):
        raise typer.BadParameter("--no-worker serves nothing: leave MODULE:APP and --task-queue to `perdure worker`")
    ui = None if headless else ui_port or _ui_port(port)
    with one_line_errors():
        app = None if no_worker else load(target or (EXAMPLE[1] if Path(EXAMPLE[0]).is_file() else DEMO))
        with _payloads(db) as made:
            asyncio.run(_dev(app, port, ui, db, task_queue, made))


@contextmanager
def _payloads(db: Path | None) -> Generator[str]:
    """Where large payloads go: as the environment says, else into a folder, beside the database where there is one.

    Yields the address where it was chosen here: other shells need it then.
    """
    from perdure.payloads.configured import VARIABLE, file_address

    if os.environ.get(VARIABLE):
        yield ""
        return
    with TemporaryDirectory(prefix="perdure-") as temporary:
        os.environ[VARIABLE] = file_address(Path(f"{db}.payloads") if db else Path(temporary))
        try:
            yield os.environ[VARIABLE]
        finally:
            del os.environ[VARIABLE]


def _ui_port(port: int) -> int:
    """The Web UI's port beside a server's port, as with Temporal's own two: 7233 and 8233."""
    return port + 1000 if port + 1000 <= 65535 else port - 1000


async def _dev(
    app: App | None, port: int, ui_port: int | None, db: Path | None, task_queue: str | None, payloads: str
) -> None:
    from perdure.client import PerdureClient
    from perdure.contracts import TASK_QUEUE
    from perdure.dev import dev_server

    keep_stdout(logs=True)
    stop = stopping()
    queue = task_queue or TASK_QUEUE
    async with dev_server(port=port, ui_port=ui_port, db=db) as server:
        say(f"Temporal server at {server.address}")
        if server.ui:
            say(f"Web UI at {server.ui}")
        if payloads:
            say(f"large payloads are kept in files; other shells read them with: {_export(payloads)}")
        if app is None:
            say(f"no worker: start one with `perdure worker MODULE:APP{_address(port)}`")
            await _first(_wait(stop), server.ended())
        else:
            say(f"try: {_command(app, port, queue)}")
            await _first(serve(PerdureClient(server.client), app, stop, task_queue=queue), server.ended())


async def _wait(stop: asyncio.Event) -> None:
    await stop.wait()


async def _first(*works: Coroutine[None, None, None]) -> None:
    """Wait until one of `works` ends, and end the others. Raises what that one raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def _command(app: App, port: int, queue: str) -> str:
    """A command that starts a run on this server."""
    agent = next(iter(app.agents))
    words = ["perdure", "start", agent, PROMPTS.get(agent, "Hello!")]
    words += [] if queue == "perdure" else ["--task-queue", queue]
    return shlex.join(words) + _address(port)


def _export(payloads: str) -> str:
    """The line that gives another shell the payload store."""
    return f"export PERDURE_PAYLOADS={shlex.quote(payloads)}"


def _address(port: int) -> str:
    """The option that leads a command to this server."""
    return "" if port == 7233 else f" --address 127.0.0.1:{port}"
