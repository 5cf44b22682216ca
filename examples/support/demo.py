"""The crash demo: `make demo`, or `python -m examples.support.demo [--model openai:…]`.

A real Temporal server, a worker in a process of its own, two questions. In the middle of the second, when the refund is
paid and nobody has been told yet, the worker is killed with SIGKILL and started again.
"""

import argparse
import asyncio
import os
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from perdure.client import PerdureClient, RunHandle
from perdure.dev import DevServer, dev_server

FIRST = "Where is order A-1004?"
SECOND = "Please refund the headphones of ada@example.com."
PORT, UI_PORT = 7239, 8239


def say(text: str) -> None:
    """One line for the person who watches."""
    print(text, flush=True)


class WorkerProcess:
    """`perdure worker` in a process of its own."""

    def __init__(self, server: DevServer, database: Path, model: str | None) -> None:
        self._environment = os.environ | {
            "TEMPORAL_ADDRESS": server.address,
            "PERDURE_SUPPORT_DB": str(database),
            "PERDURE_SUPPORT_DELAY": "0.2",
            "PERDURE_SUPPORT_TOOL_DELAY": "0.8",
            **({"PERDURE_SUPPORT_MODEL": model} if model else {}),
        }
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the worker and wait until it polls."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "perdure.cli", "worker", "examples.support.app:app", "--grace", "1"),
            env=self._environment,
            stderr=asyncio.subprocess.PIPE,
        )
        assert self._process.stderr is not None
        line = (await self._process.stderr.readline()).decode().strip()
        say(f"  worker {self._process.pid}: {line}")

    async def end(self, how: signal.Signals) -> None:
        """Send a signal and wait until the process is gone."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(how)
            await self._process.communicate()
            say(f"  worker {self._process.pid}: ended by {how.name}")


async def ask(run: RunHandle) -> None:
    """Show a run step by step, up to its answer."""
    async for progress in run.follow():
        for entry in progress.entries:
            for outcome in entry.get("outcomes", []):
                say(f"  {outcome['tool']}  →  {outcome['kind']}")
    result = await run.result()
    say(f"  answer: {result.output['reply']}")


async def main(model: str | None) -> None:
    """The whole demo."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "support.db"
        async with dev_server(port=PORT, ui_port=UI_PORT) as server:
            worker = WorkerProcess(server, database, model)
            client = PerdureClient(server.client)
            try:
                await worker.start()
                say(f"\n1. {FIRST}")
                await ask(await client.start("support", FIRST, id="first"))
                say(f"\n2. {SECOND}")
                await killed_in_the_middle(client, worker, database)
                await report(client, database)
                await look(server.ui)
            finally:
                await worker.end(signal.SIGTERM)


async def killed_in_the_middle(client: PerdureClient, worker: WorkerProcess, database: Path) -> None:
    """Ask, kill the worker when the refund is in the database and not yet in history, start it again."""
    run = await client.start("support", SECOND, id="second")
    await until(lambda: count(database, "refunds") == 1)
    say("  the refund is paid, the tool has not answered yet: kill the worker")
    await worker.end(signal.SIGKILL)
    say(f"  the run is still there: {(await run.describe()).status}")
    await worker.start()
    await ask(run)


async def report(client: PerdureClient, database: Path) -> None:
    """Show that nothing was done twice."""
    refunds, notes = count(database, "refunds"), count(database, "notes")
    usage = (await client.run("second").result()).usage
    say(f"\nThe database holds {refunds} refund and {notes} note: the tools that were repeated did nothing twice.")
    say(f"The second run took {usage.requests} model requests and {usage.tool_calls} tool calls.")
    if refunds != 1 or notes != 1:
        raise SystemExit("that is not what should have happened")


async def look(ui: str | None) -> None:
    """Keep the server for the person who watches, if there is one, to look at the run in the Web UI."""
    if not sys.stdin.isatty():
        say("Run it in a terminal to look at it in the Web UI.")
        return
    say(f"Look at it in the Web UI: {ui}/namespaces/default/workflows/second")
    with suppress(EOFError):  # the terminal's input is closed: as good as Enter
        await asyncio.to_thread(input, "Press Enter to stop the server. ")


def count(database: Path, table: str) -> int:
    """How many rows a table of the shop has; 0 while there is none."""
    if not database.exists():
        return 0
    with closing(sqlite3.connect(database, timeout=10)) as connection:
        exists = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] if exists else 0


async def until(condition: Callable[[], Any]) -> None:
    """Wait until something is so, at most half a minute."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 (another process writes what is waited for)
            await asyncio.sleep(0.02)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a real model instead of the offline one, such as openai:gpt-5")
    asyncio.run(main(parser.parse_args().model))
