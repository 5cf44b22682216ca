"""The demo: `make demo`, or `python -m examples.support.demo [--model openai:…]`.

A real Temporal server, a worker in a process of its own, three questions. In the middle of the second, when the refund
is paid and nobody has been told yet, the worker is killed with SIGKILL and started again. The third asks for a refund
that a person has to approve: you, at this terminal, in the Web UI or with `perdure approve`.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.client import ClientError, PerdureClient, RunHandle
from perdure.contracts import RunResult
from perdure.dev import DevServer, dev_server

from .demo_decision import decide, show
from .demo_facts import audit_lines, disagreement, facts
from .demo_person import Person
from .demo_terminal import ask, attended, say
from .demo_worker import WorkerProcess

FIRST = "Where is order A-1004?"
SECOND = "Please refund the headphones of ada@example.com."
THIRD = "Please refund the keyboard of grace@example.com."
PORT, UI_PORT = 7239, 8239


@dataclass(frozen=True)
class Demo:
    """What the parts of the demo share."""

    server: DevServer
    client: PerdureClient
    worker: WorkerProcess
    database: Path
    person: Person

    async def question(self) -> None:
        """A question and its answer."""
        say(f"\n1. {FIRST}")
        await self._follow(await self.client.start("support", FIRST, id="first"))

    async def crash(self) -> None:
        """Kill the worker when the refund is in the database and not yet in history, and start it again."""
        say(f"\n2. {SECOND}")
        before = facts(self.database)
        run = await self.client.start("support", SECOND, id="second")
        await until(lambda: facts(self.database).since(before).refunds)
        say("  the refund is paid, the tool has not answered yet: kill the worker")
        await self.worker.end(signal.SIGKILL)
        say(f"  the run is still there: {(await run.describe()).status}")
        await self.worker.start()
        usage = (await self._follow(run)).usage
        found = facts(self.database).since(before)
        refunds, notes = len(found.refunds), len(found.notes)
        say(f"  the database holds {refunds} refund and {notes} note: the tools that were repeated did nothing twice")
        say(f"  the run took {usage.requests} model requests and {usage.tool_calls} tool calls")
        if refunds != 1 or notes != 1:
            raise SystemExit("that is not what should have happened")

    async def approval(self) -> None:
        """A refund that waits for a person; then what is on record of it."""
        say(f"\n3. {THIRD}")
        before = facts(self.database)
        result = await self._follow(await self.client.start("support", THIRD, id="third"))
        found = facts(self.database).since(before)
        say("\nThe audit of this run:")
        for line in audit_lines(result.audit):
            say(f"  {line}")
        say("What it left in the database:")
        for line in list(found.lines()) or ["no refund and no note"]:
            say(f"  {line}")
        if problem := disagreement(result.audit, found):
            raise SystemExit(f"that is not what was decided: {problem}")
        say("That is what was decided.")

    async def _follow(self, run: RunHandle) -> RunResult:
        """Show a run step by step up to its answer; what waits meanwhile is decided."""
        async for progress in run.follow():
            for entry in progress.entries:
                for outcome in entry.get("outcomes", []):
                    say(f"  {outcome['tool']}  →  {outcome['kind']}")
            for row in await run.pending() if progress.answered else []:
                show(run, row, self.person, self.server.address, self.server.ui)
                await decide(run, row, self.person)
        result = await run.result()
        say(f"  answer: {result.output['reply']}")
        return result


PARTS = {"question": Demo.question, "crash": Demo.crash, "approval": Demo.approval}


async def main(options: argparse.Namespace) -> None:
    """The whole demo, or the one part that is wanted."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "support.db"
        async with dev_server(port=options.port, ui_port=options.ui_port) as server:
            worker = WorkerProcess(server.address, database, options.model)
            demo = Demo(server, PerdureClient(server.client), worker, database, Person(options.timeout))
            try:
                await worker.start()
                for part in [options.only] if options.only else PARTS:
                    await PARTS[part](demo)
                await look(server.ui, demo.person)
            finally:
                await worker.end(signal.SIGTERM)


async def look(ui: str | None, person: Person) -> None:
    """Keep the server for the person who watches, if there is one, to look at the runs in the Web UI."""
    if person.away or not attended(person.fd):
        say("\nRun it in a terminal, and answer, to look at it in the Web UI.")
        return
    say(f"\nLook at it in the Web UI: {ui}/namespaces/default/workflows")
    with suppress(EOFError):  # the terminal's input is closed: as good as Enter
        await ask("Press Enter to stop the server. ", person.fd)


async def until(condition: Callable[[], Any]) -> None:
    """Wait until something is so, at most half a minute."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 (another process writes what is waited for)
            await asyncio.sleep(0.02)


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a real model instead of the offline one, such as openai:gpt-5")
    parser.add_argument("--only", choices=PARTS, help="only this part")
    parser.add_argument("--timeout", type=float, default=30, help="seconds for each answer (default: %(default)s)")
    parser.add_argument("--port", type=int, default=PORT, help="of the Temporal server (default: %(default)s)")
    parser.add_argument("--ui-port", type=int, default=UI_PORT, help="of the Web UI (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        asyncio.run(main(options()))
    except ClientError as error:
        raise SystemExit(f"Error: {error}") from None
    except KeyboardInterrupt:
        sys.exit(130)
