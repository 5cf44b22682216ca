"""Whether the run is being cancelled. An await that absorbed the cancel doesn't hide it."""

from __future__ import annotations

import asyncio


def cancelled() -> bool:
    """Whether this task's cancellation was asked for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def raise_if_cancelled() -> None:
    """End the run if its cancellation was asked for."""
    if cancelled():
        raise asyncio.CancelledError
