"""A run that is shown while something else is done: sending to it, waiting for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from perdure.cli.display import Display

if TYPE_CHECKING:
    from perdure.client import Progress, RunHandle


async def at_once() -> None:
    """For a run that is there already."""


class Watch:
    """Shows a run from `start` on while the block runs, and hands every look to `see`. Begins when `begun` has."""

    def __init__(
        self,
        run: RunHandle,
        display: Display,
        start: int,
        *,
        see: Callable[[Progress], object] = id,
        begun: Callable[[], Awaitable[Any]] = at_once,
    ) -> None:
        self._run = run
        self._display = display
        self._next = start
        self._see = see
        self._begun = begun
        self._moved = asyncio.Event()

    async def __aenter__(self) -> Watch:
        self.task = asyncio.create_task(self._watch())
        """Ends with the run."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await ended(self.task)

    async def has_shown_all(self) -> None:
        """Wait until all is shown that is there now. Raises as `RunHandle.length`."""
        there = await self._run.length()
        while self._next < there and not self.task.done():
            self._moved.clear()
            await first(self._moved.wait(), self.task)

    async def _watch(self) -> None:
        from perdure.client import NoSuchRun

        await self._begun()
        while True:
            try:
                async for progress in self._run.follow(start=self._next):
                    self._display.show(progress)
                    self._see(progress)
                    self._next = progress.next
                    self._moved.set()
                return
            except NoSuchRun:
                if self._begun is at_once:
                    raise
                await asyncio.sleep(0.1)  # its first message is on the way


async def first(*works: Awaitable[Any]) -> None:
    """Wait until one of them ends. Tasks among them go on; the others are cancelled."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await ended(*(task for task, work in zip(tasks, works, strict=True) if task is not work))


async def ended(*tasks: asyncio.Future[Any]) -> None:
    """Cancel what still runs, and wait for it; what it raises is no longer of interest."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
