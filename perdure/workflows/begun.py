"""What a call has begun outside the run, waited for: an activity of others, a child workflow, a Nexus operation."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.workflows.state import RunState


class GivenUp(Exception):
    """What was begun hasn't ended although it was cancelled, or has and nobody waited. Never leaves the workflow."""


async def ended(state: RunState, work: Coroutine[Any, Any, Any], patience: float) -> Any:
    """Await `work`, which begins something and waits for its end. A run doesn't continue as new meanwhile.

    Where the run or its turn is cancelled, so is what was begun: it has `patience` seconds to end, which are counted
    anew if it is cancelled again. Raises `GivenUp` after that, `CancelledError` where nothing was begun, and whatever
    `work` raises.
    """
    task = asyncio.create_task(_begun(work))
    state.activities += 1
    try:
        return await _waited_for(task, patience)
    finally:
        state.activities -= 1


async def _begun(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    except asyncio.CancelledError:  # of a task that hasn't begun this isn't reached
        raise GivenUp from None


async def _waited_for(task: asyncio.Task[Any], patience: float) -> Any:
    try:
        await workflow.wait([task])
    except asyncio.CancelledError:
        task.cancel()
        await _patiently(task, patience)
    return task.result()


async def _patiently(task: asyncio.Task[Any], patience: float) -> None:
    while not task.done():
        try:
            done, _ = await workflow.wait([task], timeout=patience)
        except asyncio.CancelledError:
            continue
        if not done:
            task.add_done_callback(_retrieve)
            raise GivenUp


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Look at the failure of a task nobody waits for, which would else be logged as never looked at."""
    if not task.cancelled():
        task.exception()
