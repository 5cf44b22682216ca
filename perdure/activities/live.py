"""Heartbeats that carry what is going on: the model's partial answer, or a tool's progress. They write no history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from temporalio import activity

from perdure.activities.surrogates import whole
from perdure.context import Live

INTERVAL = 0.1
"""Seconds between looks at the text; the worker's throttle decides how often one is sent."""
QUIET_INTERVAL = 1.0
"""Seconds between heartbeats while the text does not change: a cancel only arrives with a heartbeat."""


@asynccontextmanager
async def heartbeats() -> AsyncGenerator[Live]:
    """Heartbeat in the background while the block runs, a short one not at all. Details: `attempt` and `text`.

    A reader who sees another `attempt` drops what it showed before: a repeated model request starts its text anew.
    """
    live = Live()
    task = asyncio.create_task(_beat_until_cancelled(live))
    try:
        yield live
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _beat_until_cancelled(live: Live) -> None:
    loop = asyncio.get_running_loop()
    last_text, last_time = live.text, loop.time()
    timeout = activity.info().heartbeat_timeout
    quiet = min(QUIET_INTERVAL, timeout.total_seconds() / 3) if timeout else QUIET_INTERVAL
    while True:
        await asyncio.sleep(min(INTERVAL, quiet))
        if live.text != last_text or loop.time() - last_time >= quiet:
            last_text, last_time = live.text, loop.time()
            beat(live)


def beat(live: Live) -> None:
    """Send one heartbeat. Half a character, as a stream may end with, would fail it, and cancel the activity."""
    activity.heartbeat({"attempt": activity.info().attempt, "text": whole(live.text)})
