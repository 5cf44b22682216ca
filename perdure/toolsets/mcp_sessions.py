"""The MCP sessions of one server that belong to a run each. They live on one worker; the run's calls are sent there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Any

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.mcp import MCPToolset

from perdure.context import Binding, current_call
from perdure.toolsets.mcp_connection import Connection

IDLE = 1800.0
"""Seconds without a call after which a session is ended: nobody tells a worker that a run is over."""


class Sessions:
    """By run: its connection. `make` builds one that isn't connected."""

    def __init__(self, server: str, make: Callable[[], Connection]) -> None:
        self._server = server
        self._make = make
        self._open: dict[str, Connection] = {}
        self._used: dict[str, float] = {}

    async def of_this_run(self, binding: Binding) -> AbstractAsyncContextManager[MCPToolset[Any]]:
        """One call in the run's session. Raises `ServerUnreachable`; and `ToolFailed` where the run had a session that
        is lost, once a new one is open: what the call counts on isn't there, so it isn't made."""
        run = current_call().run_id
        await self._end_idle()
        self._used[run] = monotonic()
        connection = self._open.setdefault(run, self._make())
        before = connection.made
        toolset = await connection.ready()
        binding.holds = True
        if connection.made != before and (before or binding.had):
            raise ToolFailed(
                f"The session with the MCP server {self._server!r} was lost, with what earlier calls had set up. "
                "A new one is open, in which this call was not run: begin again there."
            )
        return connection.using(toolset)

    async def close(self) -> None:
        """End all of them."""
        for run in list(self._open):
            await self._end(run)

    async def _end_idle(self) -> None:
        before = monotonic() - IDLE
        for run in [run for run, used in self._used.items() if used < before and not self._open[run].busy]:
            await self._end(run)

    async def _end(self, run: str) -> None:
        self._used.pop(run, None)
        connection = self._open.pop(run, None)
        if connection is not None:
            await connection.close()
