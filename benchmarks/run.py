"""perdure beside Pydantic AI's Temporal capability and a bare workflow: `python -m benchmarks.run`."""

import argparse
import asyncio
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path

from benchmarks.imports import measure_imports
from benchmarks.many_tools import measure_many_tools
from benchmarks.mcp import measure_mcp
from benchmarks.measure import Run, measure
from benchmarks.memory import measure_memory
from benchmarks.peer import MODULES, Peer, load
from benchmarks.server import server
from benchmarks.table import COMPARED, Report, markdown
from benchmarks.waiting import CACHE, Waiting, measure_waiting

BOUND = timedelta(minutes=3)
"""The server ends a run that takes longer."""
STEPS = [10, 50, 100, COMPARED]
LONG = 400
"""More than the capability's history can hold; the bare workflow has nothing to show here."""
QUICK = [10, 50]
WAITING = [(1000, 200, CACHE), (100, 40, 0)]
"""Runs that wait at once on one worker, decisions that are timed, and how many runs the worker keeps in memory."""
QUICK_WAITING = [(100, 20, CACHE)]


async def collect(
    peers: Sequence[Peer], steps: Sequence[int], repeat: int, waiting: Sequence[tuple[int, int, int]]
) -> Report:
    """Measure everything: single runs, the short things first, then many that wait at once."""
    ours = next((peer for peer in peers if peer.name == "perdure"), None)
    if ours:
        _progress("imports")
    imports = measure_imports() if ours else None
    async with server() as address:
        if ours:
            _progress("memory")
        memory = await measure_memory(ours, address) if ours else None
        runs: list[Run] = []
        for count in steps:
            runs += await _compare(peers, address, count, repeat if count == COMPARED else 1)
        if ours:
            _progress("500 tools beside 5")
        tools = await measure_many_tools(address) if ours else None
        if ours:
            _progress("a tool of an MCP server beside a function")
        mcp = await measure_mcp(address) if ours else None
    return Report(runs, imports, memory, await _wait(waiting) if ours else [], tools, mcp)


async def _compare(peers: Sequence[Peer], address: str, steps: int, repeat: int) -> list[Run]:
    """Each peer's median run of `repeat`; the peers take turns, so that a slow minute of the machine hits all."""
    tries: dict[str, list[Run]] = {peer.name: [] for peer in peers if steps != LONG or peer.name != "bare"}
    for turn in range(repeat):
        for peer in peers:
            if peer.name in tries:
                replays = 3 if steps == COMPARED and turn == 0 else 0
                tries[peer.name].append(await _measure(peer, address, steps, replays))
    return [_median(runs) for runs in tries.values()]


async def _measure(peer: Peer, address: str, steps: int, replays: int) -> Run:
    client = await peer.connect(address)
    async with peer.serve(client):
        await measure(client, peer, 3, bound=BOUND)  # warms up
        run = await measure(client, peer, steps, bound=BOUND, replays=replays)
    _progress(f"{peer.name}, {steps} steps: {run.outcome} after {run.seconds:.1f} s")
    return run


async def _wait(waiting: Sequence[tuple[int, int, int]]) -> list[Waiting]:
    found: list[Waiting] = []
    for runs, decisions, cache in waiting:
        _progress(f"{runs} runs wait on a worker that keeps {cache}")
        found.append(await measure_waiting(runs, decisions, cache))
    return found


def _median(runs: Sequence[Run]) -> Run:
    seconds = statistics.median_low(run.seconds for run in runs)
    chosen = next(run for run in runs if run.seconds == seconds)
    return replace(chosen, replay_seconds=runs[0].replay_seconds)


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"only {QUICK} steps, and 100 waiting runs")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the numbers there too")
    parser.add_argument("--peers", nargs="+", choices=list(MODULES), default=list(MODULES))
    parser.add_argument(
        "--repeat", type=int, default=3, help=f"runs of {COMPARED} steps, the median counts (default 3)"
    )
    return parser.parse_args()


def main() -> None:
    """Parse, measure, print the table."""
    options = _parse()
    steps, waiting = (QUICK, QUICK_WAITING) if options.quick else ([*STEPS, LONG], WAITING)
    report = asyncio.run(collect([load(name) for name in options.peers], steps, options.repeat, waiting))
    print(markdown(report))
    if options.json:
        ratios = [asdict(ratio) for ratio in report.ratios()]
        options.json.write_text(json.dumps({**asdict(report), "ratios": ratios}, indent=2) + "\n")


if __name__ == "__main__":
    main()
