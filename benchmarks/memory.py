"""Resident memory of a worker process per 100 open runs, each waiting in a tool.

`python -m benchmarks.memory [--peer capability]` measures; the worker is this same module with `--serve`.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client, WorkflowHandle

from benchmarks.peer import MODULES, Peer, load, start
from benchmarks.process import resident, worker_process
from benchmarks.server import server

BOUND = timedelta(minutes=2)
WAITING = -1
"""As a number of steps: the run waits in its first tool call."""


@dataclass(frozen=True)
class Memory:
    """Resident set of one worker process, in bytes."""

    open_runs: int
    before: int
    """After some warming runs have completed."""
    after: int
    """With `open_runs` more runs open."""


async def measure_memory(peer: Peer, address: str, open_runs: int = 100) -> Memory:
    """Start a worker process and `open_runs` runs, and read its resident set before and after."""
    client = await peer.connect(address)
    async with worker_process("-m", "benchmarks.memory", "--peer", peer.name, "--serve", address) as pid:
        warming = [await start(client, peer, 3, BOUND) for _ in range(20)]
        await asyncio.gather(*(handle.result() for handle in warming))
        before = resident(pid)
        waiting = [await start(client, peer, WAITING, BOUND) for _ in range(open_runs)]
        await _all_in_tool(peer, waiting)
        after = resident(pid)
        await asyncio.gather(*(handle.terminate() for handle in waiting))
    return Memory(open_runs, before, after)


async def _all_in_tool(peer: Peer, handles: Sequence[WorkflowHandle[Any, Any]]) -> None:
    async with asyncio.timeout(BOUND.total_seconds() / 2):
        while not all([await _in_tool(peer, handle) for handle in handles]):  # noqa: ASYNC110 (the server has no event)
            await asyncio.sleep(0.5)


async def _in_tool(peer: Peer, handle: WorkflowHandle[Any, Any]) -> bool:
    description = await handle.describe()
    return any(
        pending.activity_type.name == peer.tool_activity
        and pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
        for pending in description.raw_description.pending_activities
    )


async def _serve(peer: Peer, address: str) -> None:
    client: Client = await peer.connect(address)
    async with peer.serve(client):
        await asyncio.Event().wait()


async def _alone(peer: Peer) -> Memory:
    async with server() as address:
        return await measure_memory(peer, address)


def main() -> None:
    """Measure, or be the worker that is measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--peer", choices=list(MODULES), default="perdure")
    parser.add_argument("--serve", metavar="ADDRESS", help="be the worker, until killed")
    options = parser.parse_args()
    peer = load(options.peer)
    if options.serve:
        asyncio.run(_serve(peer, options.serve))
    else:
        print(asyncio.run(_alone(peer)))


if __name__ == "__main__":
    main()
