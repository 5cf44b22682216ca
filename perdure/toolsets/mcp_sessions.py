"""The MCP sessions of one server that belong to a run each. They live on one worker; the run's calls are sent there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from dataclasses import dataclass
from time import monotonic
from typing import Any

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.mcp import MCPToolset

from perdure.context import Binding, current_call
from perdure.errors import ServerUnreachable
from perdure.toolsets.mcp_connection import Connection

IDLE = 1800.0
"""Seconds without a call after which a session is ended: nobody tells a worker that a run is over."""


@dataclass
class _Session:
    connection: Connection
    calls: int = 0
    """How many calls are open in it, or wait until it is."""
    used: float = 0.0
    """When the last call ended."""


class Sessions:
    """By run: its connection. `make` builds one that isn't connected. At most `most` are held at a time."""

    def __init__(self, server: str, make: Callable[[], Connection], most: int) -> None:
        self._server = server
        self._make = make
        self._most = most
        self._open: dict[str, _Session] = {}
        self._timer: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    @asynccontextmanager
    async def of_this_run(self, binding: Binding) -> AsyncGenerator[MCPToolset[Any]]:
        """One call in the run's session. Raises `ServerUnreachable`; and `ToolFailed` where the run had a session that
        is lost, once a new one is open: what the call counts on isn't there, so it isn't made."""
        run = current_call().run_id
        over = None if run in self._open else self._longest_idle()
        session = self._open.setdefault(run, _Session(self._make()))
        session.calls += 1
        try:
            if over is not None:
                await over.connection.close()
            toolset = await self._ready(session.connection, binding)
            async with session.connection.using(toolset):
                yield toolset
        finally:
            session.calls -= 1
            session.used = monotonic()
            self._watch()

    async def close(self) -> None:
        """End all of them."""
        if self._timer is not None:
            self._stop.set()
            await asyncio.wait([self._timer])
            self._timer = None
        for run in list(self._open):
            await self._open.pop(run).connection.close()

    async def _ready(self, connection: Connection, binding: Binding) -> MCPToolset[Any]:
        before = connection.made
        toolset = await connection.ready()
        binding.holds = True
        if connection.made != before and (before or binding.had):
            raise ToolFailed(
                f"The session with the MCP server {self._server!r} was lost, and with it what earlier calls had set "
                "up. A new one is open, in which this call was not run: begin again there."
            )
        return toolset

    def _longest_idle(self) -> _Session | None:
        """The session that has to end before another is made; `None` where there is room."""
        if len(self._open) < self._most:
            return None
        idle = {run: session.used for run, session in self._open.items() if not session.calls}
        if not idle:
            raise ServerUnreachable(
                f"The MCP server {self._server!r} has {self._most} sessions on this worker, all of them in use."
            )
        return self._open.pop(min(idle, key=lambda run: idle[run]))

    def _watch(self) -> None:
        if self._open and (self._timer is None or self._timer.done()):
            self._stop = asyncio.Event()
            self._timer = asyncio.create_task(self._end_idle(self._stop), context=Context())

    async def _end_idle(self, stop: asyncio.Event) -> None:
        """End each session when its time is up, until there is none or `stop` is set."""
        while self._open and not stop.is_set():
            now = monotonic()
            left = {run: IDLE if at.calls else at.used + IDLE - now for run, at in self._open.items()}
            for run in [run for run, seconds in left.items() if seconds <= 0]:
                if (session := self._open.get(run)) is not None and not session.calls:
                    del self._open[run]
                    await session.connection.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), max(0.0, min(left.values())))
