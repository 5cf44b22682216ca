"""A connection to one MCP server: made when it is needed, held, looked at before it is used, made anew when it is dead.

Runs on the worker. What a call can't know is told apart here: that it never left (`ServerUnreachable`), and that its
answer was lost (`AnswerLost`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastmcp.exceptions import ToolError
from mcp.client.subscriptions import ListenNotSupportedError, listen
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed, UserError
from pydantic_ai.mcp import MCPToolset
from temporalio.exceptions import ApplicationError

from perdure.errors import AnswerLost, ServerUnreachable
from perdure.toolsets.lost import broken, how, is_mcp_error, lost, of_session
from perdure.toolsets.mcp_address import address_of
from perdure.toolsets.reasons import for_the_log, reason_of

logger = logging.getLogger("perdure.mcp")

PROBE = 5.0
"""Seconds that a server has to answer anything at all, where no call of it is open. Then it counts as dead."""
ANSWERS = (ModelRetry, ToolFailed, ToolError, UserError, ApplicationError, ApprovalRequired, CallDeferred)
"""What a call raises that has come to an end, in words."""


class Connection:
    """Holds at most one open toolset. `make` builds one without connecting."""

    def __init__(self, server: str, make: Callable[[], MCPToolset[Any]], seconds: float, changed: Callable[[], None]):
        self._server = server
        self._make = make
        self._seconds = seconds
        self._changed = changed
        self._open: MCPToolset[Any] | None = None
        self.made = 0
        """How often it was made."""
        self._calls = 0
        self._lock = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether a call is open."""
        return self._calls > 0

    async def ready(self) -> MCPToolset[Any]:
        """The open toolset of a server that answers; a new one where there is none. Raises `ServerUnreachable`.

        While a call is open nothing is asked: a server may be unable to answer until that call ends. Nor is a
        connection that stands ended under it, whatever another call met with.
        """
        async with self._lock:
            if self._open is not None:
                if await self._usable(self._open):
                    return self._open
                logger.warning("MCP server %r: the connection is dead and is made anew", self._server)
                await self._close()
            self._open = await self._connect()
            self.made += 1
            self._watch = asyncio.create_task(_watch(self._open, self._changed))
            return self._open

    @asynccontextmanager
    async def using(self, toolset: MCPToolset[Any]) -> AsyncGenerator[MCPToolset[Any]]:
        """One call by a toolset that is `ready`. Raises `AnswerLost` for a call in it without an answer, or with one
        that nobody can read. The connection stays: before its next use it is seen whether it is good."""
        self._calls += 1
        try:
            yield toolset
        except Exception as error:
            own = broken(error) or isinstance(error, TimeoutError | ValueError)
            cause = error if own else error.__cause__ or error
            if not lost(cause) and (isinstance(error, ANSWERS) or is_mcp_error(error)):
                raise
            raise for_the_log(AnswerLost(f"The MCP server {self._server!r} {how(cause)}."), cause) from None
        finally:
            self._calls -= 1

    async def close(self) -> None:
        """End the connection, and the server's process where it is one of ours."""
        async with self._lock:
            await self._close()

    async def _usable(self, toolset: MCPToolset[Any]) -> bool:
        return toolset.client.is_connected() if self._calls else await self._answers(toolset)

    async def _answers(self, toolset: MCPToolset[Any]) -> bool:
        """Whether the server answers, be it with an error: newer ones know no ping, and say so. It counts as dead where
        it no longer knows the session."""
        try:
            await asyncio.wait_for(toolset.client.ping(), PROBE)
        except Exception as error:
            return is_mcp_error(error) and not lost(error) and not of_session(error)
        return True

    async def _connect(self) -> MCPToolset[Any]:
        toolset = self._make()
        try:
            async with asyncio.timeout(self._seconds):
                await toolset.__aenter__()
        except Exception as error:
            await _closed(toolset)
            where = f" at {address}" if (address := address_of(toolset)) else ""
            text = f"The MCP server {self._server!r} can't be reached{where} ({reason_of(error)})."
            raise for_the_log(ServerUnreachable(text), error) from None
        return toolset

    async def _close(self) -> None:
        toolset, watch = self._open, self._watch
        self._open = self._watch = None
        if watch is not None:
            watch.cancel()
            await asyncio.wait([watch])
        if toolset is not None:
            await asyncio.shield(_closed(toolset, entered=True))


async def _closed(toolset: MCPToolset[Any], *, entered: bool = False) -> None:
    """Let go of everything. `Client.close` ends the process of a stdio server, which leaving the toolset doesn't."""
    with suppress(Exception):
        await toolset.client.close()
    with suppress(Exception):
        if entered:
            await toolset.__aexit__(None, None, None)


async def _watch(toolset: MCPToolset[Any], changed: Callable[[], None]) -> None:
    """Listen for changes of the tool list, as newer servers tell them; others send a notification by themselves."""
    try:
        async with listen(toolset.client.session, tools_list_changed=True) as events:
            async for _ in events:
                changed()
    except ListenNotSupportedError:
        return
    except Exception as error:
        logger.info("changes of the tool list are noticed by time alone: %r", error)
