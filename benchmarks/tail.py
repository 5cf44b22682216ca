"""Text that is read while it is made: how old it is when a follower has it, and what streaming costs a worker.

`python -m benchmarks.tail [--runs 20] [--seconds 10]` measures; the worker is a process of its own, its heartbeats are
as often as `perdure worker` sends them.
"""

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from benchmarks.process import worker_process
from benchmarks.server import server
from perdure import App
from perdure.client import PerdureClient, RunHandle, connect

AGENT = "clock"
SECONDS = "PERDURE_BENCH_SECONDS"
WORD = 0.02
"""Seconds between two words of the stream. Each is the time at which it was made."""
BOUND = 300.0
"""Seconds for everything; a hang must show."""


async def _stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
    ends = time.time() + float(os.environ.get(SECONDS, "10"))
    while time.time() < ends:
        yield f"{time.time():.6f} "
        await asyncio.sleep(WORD)


def _whole(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    return ModelResponse([TextPart("done")])


app = App(agents=[Agent(FunctionModel(_whole, stream_function=_stream), name=AGENT)])


@dataclass(frozen=True)
class Tail:
    """What a follower saw of one run, and what several runs at once cost."""

    looks: int
    """Looks that showed new text."""
    p50: float
    """Age of the newest word when it was read, in seconds: by one clock, that of this machine."""
    p95: float
    runs: int
    """Runs that stream at once, which nobody follows."""
    cpu: float
    """Of the worker meanwhile, in cores."""


async def measure_tail(runs: int, seconds: float) -> Tail:
    """Follow one run, then let `runs` stream at once."""
    async with asyncio.timeout(BOUND), server() as address:
        client = await connect(address=address, namespace="default")
        command = ["-m", "perdure.worker", "benchmarks.tail:app", "--address", address, "--namespace", "default"]
        async with worker_process(*command, environment={SECONDS: str(seconds)}) as worker:
            await (await client.start(AGENT, "warm up")).result()
            ages = await _ages(await client.start(AGENT, "go"))
            cpu = await _cpu(client, worker, runs, seconds)
    return Tail(len(ages), statistics.median(ages), statistics.quantiles(ages, n=20)[-1], runs, cpu)


async def _ages(run: RunHandle) -> list[float]:
    """The age of the newest word, each time there is a new one."""
    ages: list[float] = []
    newest = ""
    async for look in run.follow():
        for live in look.live:
            words = live.text.split()
            if words and words[-1] != newest:
                newest = words[-1]
                ages.append(time.time() - float(newest))
    return ages


async def _cpu(client: PerdureClient, worker: int, runs: int, seconds: float) -> float:
    """Cores that the worker uses in the middle of `runs` streams."""
    handles = await asyncio.gather(*(client.start(AGENT, "go") for _ in range(runs)))
    await asyncio.sleep(seconds / 4)
    before, began = _used(worker), time.monotonic()
    await asyncio.sleep(seconds / 2)
    cpu = (_used(worker) - before) / (time.monotonic() - began)
    await asyncio.gather(*(handle.result() for handle in handles))
    return cpu


def _used(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tail", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each run streams")
    options = parser.parse_args()
    print(asyncio.run(measure_tail(options.runs, options.seconds)))


if __name__ == "__main__":
    main()
