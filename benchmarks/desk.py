"""A worker process with runs that wait for a person, and the person: starts runs, looks at them, approves."""

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory

from benchmarks.cashier import AGENT, NOTES
from benchmarks.process import worker_process
from benchmarks.server import server
from perdure.client import PerdureClient, RunHandle, connect
from perdure.client.setup import register

NAMESPACE = "default"
TOGETHER = 20
"""Starts, looks and approvals that are under way at once, where nothing else is said."""
WAITING = 'AgentStatus = "waiting" AND ExecutionStatus = "Running"'
TIMER_STARTED = EventType.EVENT_TYPE_TIMER_STARTED

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Asked:
    """A run, and the call of it that waits."""

    run: RunHandle
    call: str


@dataclass(frozen=True)
class Desk:
    """One worker process, alone on a server of its own."""

    client: PerdureClient
    worker: int
    """The process id."""
    notes: Path
    """What the worker's tools noted: see `benchmarks.cashier`."""

    async def start(self, prompts: Sequence[str]) -> list[RunHandle]:
        """Start a run for each prompt, and wait until the server lists all of them, and no others, as waiting.

        A few at a time: activities of a thousand at once would be what the worker's memory shows afterwards.
        """
        runs: list[RunHandle] = []
        await self._all_waiting(0)
        for start in range(0, len(prompts), TOGETHER):
            group = prompts[start : start + TOGETHER]
            runs += await asyncio.gather(*(self.client.start(AGENT, prompt) for prompt in group))
            await self._all_waiting(len(runs))
        return runs

    async def _all_waiting(self, runs: int) -> None:
        while (await self.client.client.count_workflows(WAITING)).count != runs:  # noqa: ASYNC110 (there is no event)
            await asyncio.sleep(0.05)

    async def check_nothing_open(self, run: RunHandle) -> None:
        """Raise `RuntimeError` if the server knows of an open activity or a timer of a run that waits."""
        described = await self.client.client.get_workflow_handle(run.id).describe()
        activities = [pending.activity_type.name for pending in described.raw_description.pending_activities]
        timers = [event for event in (await self.history(run)).events if event.event_type == TIMER_STARTED]
        if activities or timers:
            raise RuntimeError(f"run {run.id!r} waits with the open activities {activities} and {len(timers)} timers")

    async def history(self, run: RunHandle) -> WorkflowHistory:
        """The whole history of a run."""
        return await self.client.client.get_workflow_handle(run.id).fetch_history()


@asynccontextmanager
async def desk(cache: int) -> AsyncGenerator[Desk]:
    """A server and `perdure worker benchmarks.cashier:app`, which keeps `cache` runs in memory."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        async with server() as address:
            client = await connect(address=address, namespace=NAMESPACE)
            await register(client.client)
            command = ["-m", "perdure.worker", "benchmarks.cashier:app", "--max-cached-workflows", str(cache)]
            command += ["--address", address, "--namespace", NAMESPACE]
            async with worker_process(*command, environment={NOTES: str(notes)}) as worker:
                yield Desk(client, worker, notes)


async def asked(run: RunHandle) -> Asked:
    """What waits in a run: exactly one call."""
    (row,) = await run.pending()
    return Asked(run, row["call"])


async def approve(waiting: Sequence[Asked], at_once: int = TOGETHER) -> dict[str, float]:
    """Approve calls, `at_once` of them together, and see these runs to their end before the next.

    Returns when each decision was sent, by the id of its run, in seconds since the epoch.
    """
    sent: dict[str, float] = {}

    async def one(asked: Asked) -> None:
        sent[asked.run.id] = time.time()
        await asked.run.approve(asked.call, by="ann")
        await asked.run.result()

    await each(waiting, one, at_once)
    return sent


async def each(items: Sequence[T], work: Callable[[T], Awaitable[R]], at_once: int = TOGETHER) -> list[R]:
    """Do `work` for `at_once` items together, and wait for all of these before the next."""
    done: list[R] = []
    for start in range(0, len(items), at_once):
        done += await asyncio.gather(*(work(item) for item in items[start : start + at_once]))
    return done
