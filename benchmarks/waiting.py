"""Runs that wait for a person, all at once on one worker: the memory of each, and how soon a decided call starts.

`python -m benchmarks.waiting [--runs 100] [--cache 0]` measures; the worker is a process of its own.
"""

import argparse
import asyncio
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from temporalio.client import WorkflowHistory

from benchmarks.cashier import GATED, PLAIN, PROMPT, PROMPT_WITH_RECEIPT, read_notes
from benchmarks.desk import TOGETHER, Asked, Desk, approve, asked, desk, each
from benchmarks.process import resident
from perdure.client import RunHandle

BOUND = 900.0
"""Seconds for everything; a hang must show."""
CACHE = 1000
"""Runs that `perdure worker` keeps in memory unless told otherwise."""
GROUPS = (1, 20)
"""How many decisions are made together."""


@dataclass(frozen=True)
class Spread:
    """Of several delays, in seconds."""

    p50: float
    p95: float


@dataclass(frozen=True)
class Delays:
    """How soon tools start where `at_once` calls are decided together, and the next when these runs have ended."""

    at_once: int
    decided: Spread
    """From sending the decision to the start of the tool, by this machine's clock."""
    plain: Spread
    """Of the next call of the same runs, which needs nobody: from its being scheduled by the server to its start."""


@dataclass(frozen=True)
class Waiting:
    """One worker with `runs` that wait. None had an open activity or a timer, and each of their tools ran once."""

    runs: int
    cache: int
    """How many runs the worker keeps in memory: `max_cached_workflows`."""
    before: int
    """Its resident set in bytes, after some warming runs have completed."""
    after: int
    """With all runs waiting."""
    decisions: int
    """How many are in each of the delays."""
    delays: Sequence[Delays]


async def measure_waiting(runs: int, decisions: int, cache: int = CACHE) -> Waiting:
    """Let `runs` wait, then approve `decisions` one by one and as many in groups, which is timed, and then the rest.

    Raises `RuntimeError` if a run that waits has an open activity or a timer, or a tool didn't run exactly once;
    `ValueError` if there are too few runs.
    """
    if (timed := decisions * len(GROUPS)) > runs:
        raise ValueError(f"{runs} runs are too few for {timed} decisions")
    async with asyncio.timeout(BOUND), desk(cache) as here:
        warming = await here.start([PROMPT_WITH_RECEIPT] * TOGETHER)
        await approve(await each(warming, asked))
        before = resident(here.worker)
        waiting = await here.start([PROMPT_WITH_RECEIPT] * timed + [PROMPT] * (runs - timed))
        after = resident(here.worker)
        await each(waiting, here.check_nothing_open)
        calls = await each(waiting, asked)
        delays = [await _delays(here, calls[i * decisions :][:decisions], size) for i, size in enumerate(GROUPS)]
        await approve(calls[timed:])
        _check_ran_once(here, [*warming, *waiting], [*warming, *waiting[:timed]])
    return Waiting(runs, cache, before, after, decisions, delays)


async def _delays(here: Desk, waiting: Sequence[Asked], at_once: int) -> Delays:
    sent = await approve(waiting, at_once)
    histories = await each([asked.run for asked in waiting], here.history)
    scheduled = {history.workflow_id: _plain_scheduled(history) for history in histories}
    notes = [note for note in read_notes(here.notes) if note.run in sent]
    return Delays(
        at_once,
        decided=_spread([note.at - sent[note.run] for note in notes if note.tool == GATED]),
        plain=_spread([note.at - scheduled[note.run] for note in notes if note.tool == PLAIN]),
    )


def _plain_scheduled(history: WorkflowHistory) -> float:
    """When the plain call was scheduled, by the clock of the server, which is this machine's."""
    (at,) = (
        event.event_time.ToMicroseconds() / 1e6
        for event in history.events
        if event.activity_task_scheduled_event_attributes.activity_type.name == f"tool:{PLAIN}"
    )
    return at


def _spread(seconds: Sequence[float]) -> Spread:
    return Spread(statistics.median(seconds), statistics.quantiles(seconds, n=20)[-1])


def _check_ran_once(here: Desk, every: Sequence[RunHandle], with_receipt: Sequence[RunHandle]) -> None:
    expected = Counter([(GATED, run.id) for run in every] + [(PLAIN, run.id) for run in with_receipt])
    ran = Counter((note.tool, note.run) for note in read_notes(here.notes))
    if ran != expected:
        raise RuntimeError(f"tools ran too often: {ran - expected}; too seldom: {expected - ran}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.waiting", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument(
        "--decisions", type=int, default=200, help="how many are timed one by one, and as many in groups"
    )
    parser.add_argument("--cache", type=int, default=CACHE, help="runs that the worker keeps in memory")
    options = parser.parse_args()
    print(asyncio.run(measure_waiting(options.runs, options.decisions, options.cache)))


if __name__ == "__main__":
    main()
