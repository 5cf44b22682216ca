"""Where the time of a step goes in the worker: `python -m benchmarks.profile --steps 200`.

Profiles the worker's event loop, that is activities, converters and polling. Workflow code runs in threads of its
own and isn't in the numbers; nor is waiting.
"""

import argparse
import asyncio
import cProfile
import io
import pstats
import re
import sys
import sysconfig
from datetime import timedelta
from pathlib import Path

from benchmarks.measure import Run, measure
from benchmarks.peer import MODULES, Peer, load
from benchmarks.server import server

BOUND = timedelta(minutes=10)
ROOT = Path(__file__).resolve().parent.parent
SITE = Path(sysconfig.get_path("purelib"))
SHOWN = [ROOT / "perdure", ROOT / "benchmarks"] + [SITE / name for name in ("pydantic_ai", "pydantic", "temporalio")]
"""Files whose functions are listed; the others are in their callers' cumulative time."""
HIDDEN = ["worker/_worker", "worker/_workflow", "bridge/", "client/", "service/"]
"""Parts of temporalio that only wait or pass calls on."""


async def profile(peer: Peer, steps: int) -> tuple[Run, pstats.Stats]:
    """Run `steps` steps, after a short warming run, under cProfile."""
    async with server() as address:
        client = await peer.connect(address)
        async with peer.serve(client):
            await measure(client, peer, 5, bound=BOUND)
            profiler = cProfile.Profile()
            profiler.enable()
            run = await measure(client, peer, steps, bound=BOUND)
            profiler.disable()
    return run, pstats.Stats(profiler)


def listing(stats: pstats.Stats, lines: int) -> str:
    """The `lines` functions with the largest cumulative time among those of `SHOWN`."""
    shown = "|".join(re.escape(f"{path}/") for path in SHOWN)
    hidden = "|".join(re.escape(str(SITE / "temporalio" / part)) for part in HIDDEN)
    text = io.StringIO()
    vars(stats)["stream"] = text
    stats.sort_stats("cumulative").print_stats(f"^(?!{hidden})({shown})", lines)
    kept = [line for line in text.getvalue().splitlines() if "List reduced" not in line]
    return "\n".join(kept).replace(f"{SITE}/", "").replace(f"{ROOT}/", "").strip()


def main() -> None:
    """Parse, profile, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--peer", choices=list(MODULES), default="perdure")
    parser.add_argument("--top", type=int, default=25, help="functions listed")
    parser.add_argument("--dump", metavar="FILE", help="write the whole profile, for pstats or snakeviz")
    options = parser.parse_args()
    print(f"{options.peer}: {options.steps} steps under cProfile …", file=sys.stderr)
    run, stats = asyncio.run(profile(load(options.peer), options.steps))
    if options.dump:
        stats.dump_stats(options.dump)
    print(f"{run.outcome}, {run.taken} steps, {run.seconds_per_step * 1000:.1f} ms per step while profiled")
    print(listing(stats, options.top))


if __name__ == "__main__":
    main()
