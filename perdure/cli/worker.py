"""`perdure worker`: serve an App until told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Collection
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.exits import FAILED, code_of, one_line_errors
from perdure.cli.options import Address, Namespace, Profile, Target, TaskQueue
from perdure.cli.traces import from_module_on

if TYPE_CHECKING:
    from perdure import App
    from perdure.client import PerdureClient

ONLY_HELP = "Serve only the tools of this queue of App(task_queues=…), and no runs. May be repeated."
WITHOUT_HELP = "Leave this queue of App(task_queues=…) to other workers. May be repeated."
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def worker(
    target: Target,
    task_queue: TaskQueue = None,
    grace: Annotated[float, typer.Option(min=0, help="Seconds that running activities get when told to stop.")] = 30,
    max_cached_workflows: Annotated[int, typer.Option(min=0, help="Runs that are kept in memory.")] = 1000,
    max_concurrent_activities: Annotated[int, typer.Option(min=1, help="Requests and calls at once.")] = 200,
    only: Annotated[list[str], typer.Option(metavar="QUEUE", help=ONLY_HELP, show_default=False)] = [],  # noqa: B006
    without: Annotated[list[str], typer.Option(metavar="QUEUE", help=WITHOUT_HELP, show_default=False)] = [],  # noqa: B006
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Serve the agents of an App until SIGTERM or Ctrl-C, then let running activities end."""
    where = {"address": address, "namespace": namespace, "profile": profile}
    options = {
        "grace": timedelta(seconds=grace),
        "max_cached_workflows": max_cached_workflows,
        "max_concurrent_activities": max_concurrent_activities,
        "only": only,
        "without": without,
    }
    with one_line_errors():
        app = load(target)
        asyncio.run(_worker(app, where, task_queue, options))


def load(target: str) -> App:
    """The App, and logging for the program that serves it. Not in an event loop: a module may run one of its own."""
    from perdure import worker as loader
    from perdure.activities.reported import report_once

    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format=LOG_FORMAT)
    report_once()
    try:
        return loader.load_app(target)
    except Exception as error:
        if code_of(error) is not None:
            raise
        print(from_module_on(error, __file__, str(loader.__file__)), end="", file=sys.stderr)
        raise typer.Exit(FAILED) from None


async def _worker(app: App, where: dict[str, str | None], task_queue: str | None, options: dict[str, Any]) -> None:
    from perdure.cli.connecting import keep_stdout
    from perdure.client import connect
    from perdure.contracts import TASK_QUEUE

    stop = stopping()
    keep_stdout(logs=True)
    await serve(await connect(**where), app, stop, task_queue=task_queue or TASK_QUEUE, **options)


def stopping() -> asyncio.Event:
    """An event that the first SIGTERM or SIGINT sets. The second ends the process as if nobody had listened."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def stop_once(number: int) -> None:
        loop.remove_signal_handler(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # Windows: Ctrl-C cancels the task instead
            loop.add_signal_handler(number, stop_once, number)
    return stop


async def serve(client: PerdureClient, app: App, stop: asyncio.Event, *, task_queue: str, **options: Any) -> None:
    """Serve `app` until `stop` is set. Says on stderr when the worker polls and when it has stopped."""
    from perdure.worker import serving

    queues = _queues(app, task_queue, options.get("only", ()), options.get("without", ()))
    namespace = client.client.namespace
    async with serving(client.client, app, task_queue=task_queue, **options) as running:
        # The server is asked for the namespace first; a refusal cancels this.
        while not running.is_running:  # noqa: ASYNC110 (the worker has no event for it)
            await asyncio.sleep(0.01)
        agents = ", ".join(app.agents)
        say(f"worker polls {queues} at {client.address} (namespace {namespace!r}), agents: {agents}")
        await stop.wait()
        say("worker stops: running activities may end")
    say("worker has stopped")


def _queues(app: App, task_queue: str, only: Collection[str], without: Collection[str]) -> str:
    """The queues that are served, in words. Raises `DeclarationError` for one that isn't declared."""
    from perdure.queues import served_queues

    tools = ", ".join(repr(name) for name in served_queues(app.task_queues, task_queue, only, without))
    if only:
        return f"only the tools of {tools}"
    return f"task queue {task_queue!r}" + (f" and the tools of {tools}" if tools else "")


def say(text: str) -> None:
    """One line on stderr."""
    print(f"perdure: {text}", file=sys.stderr, flush=True)
