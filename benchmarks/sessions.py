"""A session of many turns, and one turn of many steps: what a turn costs as the conversation grows.

`python -m benchmarks.sessions --turns 2000` or `--steps 1000 [--restart] [--store]`. The worker is a process of its
own.
"""

import argparse
import asyncio
import itertools
import os
import statistics
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from signal import SIGTERM

from benchmarks.process import resident, worker_process
from benchmarks.reader import AGENT, COMPACT_ABOVE
from benchmarks.server import server
from perdure.client import PerdureClient, RunHandle, connect
from perdure.contracts import Json, Session

NAMESPACE = "default"
AT_ONCE = 50
"""Messages that wait for their turn at most."""
MARGIN = 0.1
"""The part of the turns or steps at the beginning, and at the end, that is compared."""


@dataclass(frozen=True)
class Long:
    """A session of many turns, or a turn of many steps."""

    count: int
    first: float
    """Seconds for one, among the first tenth."""
    last: float
    """Among the last tenth."""
    runs: int
    """Of the chain: one more than it continued as new."""
    largest_events: int
    largest_bytes: int
    """Of the histories of these runs, each on its own."""
    memory: list[int]
    """Resident set of the worker in bytes, at each tenth."""
    longest: float
    """Seconds that the longest took more than the median: with `--restart` the step in which the worker came back, its
    start included."""


@asynccontextmanager
async def site(store: bool, compact_above: int) -> AsyncGenerator[tuple[PerdureClient, list[str], dict[str, str]]]:
    """A server, a client, and the command and environment of a worker."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PERDURE_PAYLOADS": Path(folder).as_uri()} if store else {}
        os.environ.update(environment)  # the client reads what the worker has stored
        environment[COMPACT_ABOVE] = str(compact_above)
        async with server() as address:
            command = ["-m", "perdure.worker", "benchmarks.reader:app", "--address", address, "--namespace", NAMESPACE]
            yield await connect(address=address, namespace=NAMESPACE), command, environment


async def measure_turns(turns: int, *, compact_above: int = 0) -> Long:
    """Run a session of so many turns of two model requests and a tool call of one kilobyte."""
    async with site(False, compact_above) as (client, command, environment):
        async with worker_process(*command, environment=environment) as worker:
            run = await client.start(AGENT, session=Session())
            memory: list[int] = []
            seconds: list[float] = []
            for first in range(1, turns + 1, AT_ONCE):
                last = min(first + AT_ONCE, turns + 1) - 1
                for turn in range(first, last + 1):
                    await run.send("read 1", id=str(turn))
                ended = await run.wait_turn(message=str(last))
                began = await run.turn(first)
                seconds += [_between(began.began, ended.ended) / (last - first + 1)] * (last - first + 1)
                if last * 10 // turns > len(memory):
                    memory.append(resident(worker))
            await run.close()
            await run.result()
            return await _long(client, run, seconds, memory)


async def measure_steps(steps: int, *, store: bool, restart: bool, compact_above: int = 0) -> Long:
    """Run one turn of so many steps, each a tool call of one kilobyte of prose; in the middle start the worker anew.

    It is asked to end, as a deploy does: killed, the longest step would show the heartbeat timeout of what it ran."""
    async with site(store, compact_above) as (client, command, environment):
        async with AsyncExitStack() as stack:
            started = partial(worker_process, *command, environment=environment, ended_by=SIGTERM)
            worker = await stack.enter_async_context(started())
            run = await client.start(AGENT, f"read {steps}")
            memory: list[int] = []
            restarted: datetime | None = None
            while (await client.run(run.id).describe()).status == "running":
                step = (await run.status()).step
                if step * 10 // steps > len(memory):
                    memory.append(resident(worker))
                if restart and restarted is None and step > steps // 2:
                    await stack.aclose()
                    worker = await stack.enter_async_context(started())
                    restarted = datetime.now().astimezone()
                await asyncio.sleep(0.5)
            await run.result()
            times = _response_times(await run.transcript())
            seconds = [(after - before).total_seconds() for before, after in itertools.pairwise(times)]
            return await _long(client, run, seconds, memory)


def _response_times(entries: list[Json]) -> list[datetime]:
    """When the answers to each step's calls were recorded."""
    return [datetime.fromisoformat(entry["at"]) for entry in entries if entry["kind"] == "outcomes"]


def _between(began: str, ended: str) -> float:
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()


async def _long(client: PerdureClient, run: RunHandle, seconds: list[float], memory: list[int]) -> Long:
    tenth = max(1, int(len(seconds) * MARGIN))
    sizes = await _histories(client, run)
    return Long(
        count=len(seconds),
        first=statistics.mean(seconds[:tenth]),
        last=statistics.mean(seconds[-tenth:]),
        runs=len(sizes),
        largest_events=max(events for events, _ in sizes),
        largest_bytes=max(size for _, size in sizes),
        memory=memory,
        longest=max(seconds) - statistics.median(seconds),
    )


async def _histories(client: PerdureClient, run: RunHandle) -> list[tuple[int, int]]:
    """Events and bytes of each run of the chain, the latest first."""
    sizes: list[tuple[int, int]] = []
    earlier: str | None = ""
    while earlier is not None:
        handle = client.client.get_workflow_handle(run.id, run_id=earlier or None)
        description = (await handle.describe()).raw_description.workflow_execution_info
        sizes.append((description.history_length, description.history_size_bytes))
        first = await anext(aiter(handle.fetch_history_events(page_size=1)))
        earlier = first.workflow_execution_started_event_attributes.continued_execution_run_id or None
    return sizes


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sessions", description=__doc__)
    parser.add_argument("--turns", type=int, default=0)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--store", action="store_true", help="with a payload store of files")
    parser.add_argument("--restart", action="store_true", help="start the worker anew in the middle")
    parser.add_argument("--compact-above", type=int, default=0, help="tokens; 0 = never")
    options = parser.parse_args()
    above: int = options.compact_above
    if options.turns:
        print(asyncio.run(measure_turns(options.turns, compact_above=above)))
    if options.steps:
        long = measure_steps(options.steps, store=options.store, restart=options.restart, compact_above=above)
        print(asyncio.run(long))


if __name__ == "__main__":
    main()
