"""`MCPServer`: the tools of an MCP server, over stdio or HTTP, for an agent that runs on workers.

It is Pydantic AI's `MCPToolset` with a worker's needs: one connection for the worker's life, made anew when it is dead;
a tool list that is kept for a time; calls whose answer was lost told apart from calls that failed. Nothing connects
when it is built. Importing this module needs the extra `mcp`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from time import monotonic
from typing import Any, NoReturn

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import InstructionPart, ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from perdure.context import binding
from perdure.errors import AnswerLost, DeclarationError, ServerUnreachable
from perdure.toolsets.bound import BOUND
from perdure.toolsets.claims import TRUSTED
from perdure.toolsets.lost import ASKS, GONE, UNKNOWN, is_mcp_error, mcp_code
from perdure.toolsets.mcp_names import nameable
from perdure.toolsets.reasons import for_the_log, reason_of
from perdure.typed import check_arguments

try:
    from fastmcp.client import Client
    from mcp.types import ToolListChangedNotification
    from pydantic_ai.mcp import MCPToolset

    from perdure.toolsets.mcp_connection import Connection
    from perdure.toolsets.mcp_options import check, named, times, unreachable
    from perdure.toolsets.mcp_sessions import Sessions
except ImportError as error:
    raise ImportError(
        "perdure.toolsets.mcp needs the libraries fastmcp and mcp: pip install 'perdure[mcp]'; "
        "if they are installed, a file fastmcp.py or mcp.py of yours hides one"
    ) from error

logger = logging.getLogger("perdure.mcp")

WAIT, AGAIN = 2.0, 5.0
"""Seconds for a list while a call is open: a server may be unable to answer until that ends, and the known list has to
do. After how many it is asked again."""


class MCPServer(AbstractToolset[Any]):
    """Give it to an agent: `Agent(…, toolsets=[MCPServer("https://…/mcp", id="crm")])`.

    Args:
        source: Where the server is: what `MCPToolset` takes (a URL, a path, a transport), or a function that makes it
            anew for each connection; it has to be one for a `fastmcp.Client`.
        id: Names the server to people and in messages to the model. Wire format.
        ttl: How long a tool list is used without asking. A change that the server tells of is noticed at once.
        trust_annotations: Whether the server's claims make its tools `safe` or `idempotent`.
        optional: Whether the agent goes on without the tools while the server can't be reached and its list isn't
            known. Otherwise the model request is tried again, and the turn fails when that is used up.
        connect_timeout: The time for connecting, and for a tool list.
        per_run: Whether each run has a session of its own, for servers that remember what came before. Its calls go to
            the worker that holds it, one after the other. Needs a URL, a path, or a function as `source`.
        max_sessions: How many of those a worker holds. For one more, the one that is longest without a call is ended.
        options: Those of `MCPToolset`: `read_timeout` (300 s for a call), `tool_error_behavior`, `headers`, …

    Raises `DeclarationError`, also for what `MCPToolset` refuses.
    """

    def __init__(
        self,
        source: Any,
        *,
        id: str,
        ttl: float | timedelta = 60.0,
        trust_annotations: bool = False,
        optional: bool = False,
        connect_timeout: float | timedelta = 15.0,
        per_run: bool = False,
        max_sessions: int = 100,
        **options: Any,
    ) -> None:
        where = named(id, max_sessions)
        check_arguments(MCPServer.__init__, locals(), where, own=("ttl", "connect_timeout", "max_sessions"))
        check(where, source, options, per_run)
        self._id, self._source, self._options = id, source, options
        self._ttl, self._seconds = times(where, ttl, connect_timeout)
        self._trusted, self._optional, self.per_run = trust_annotations, optional, per_run
        try:
            self._pattern = self._make()
        except Exception as error:
            raise DeclarationError(f"{where}: {unreachable(source) or error}") from error
        self._connection = self._unconnected()
        self._sessions = Sessions(id, self._unconnected, max_sessions)
        self._tools: dict[str, ToolDefinition] | None = None
        self._until, self._holders = 0.0, 0
        self.changes = 0
        """How often the list was found to be out of date."""
        self._listing = asyncio.Lock()
        self._left_out: set[str] = set()

    @property
    def id(self) -> str:
        """The server's name."""
        return self._id

    @property
    def has_listed(self) -> bool:
        """Whether the server has listed its tools yet: an optional one that can't be reached has none until then."""
        return self._tools is not None

    @property
    def tool_name_conflict_hint(self) -> str:
        """What to do where two servers have a tool of one name."""
        return self._pattern.tool_name_conflict_hint

    async def __aenter__(self) -> MCPServer:
        """Connect, for whoever comes first: the worker. A server that can't be reached is tried again by each use."""
        self._holders += 1
        if self._holders == 1:
            try:
                await self._connection.ready()
            except ServerUnreachable as error:
                logger.warning("%s Its tools will try again.", error)
        return self

    async def __aexit__(self, *args: Any) -> None:
        self._holders -= 1
        if self._holders == 0:
            await self._connection.close()
            await self._sessions.close()

    async def get_instructions(self, ctx: RunContext[Any]) -> InstructionPart | None:
        """The server's instructions, with `include_instructions=True`; none while it can't be reached."""
        if not self._pattern.include_instructions:
            return None
        try:
            return await (await self._connection.ready()).get_instructions(ctx)
        except ServerUnreachable:
            return None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools as the server has listed them within `ttl`; while it can't be reached, as it did last.

        Raises `ServerUnreachable` where no list is known, unless the server is optional.
        """
        tools = await self._listed(ctx)
        return {
            name: replace(self._pattern.tool_for_tool_def(definition, ctx=ctx), toolset=self)
            for name, definition in tools.items()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Make the call on a connection that has answered just before. Raises `ServerUnreachable` where there is none
        (then nothing ran), `AnswerLost`, and what `MCPToolset` raises for an error that the server answers with."""
        try:
            async with await self._for_call() as toolset:
                return await toolset.call_tool(name, tool_args, ctx, tool)
        except (ModelRetry, ToolFailed) as answer:
            await self._explain(name, ctx, answer)

    async def _for_call(self) -> AbstractAsyncContextManager[MCPToolset[Any]]:
        if self.per_run and (held := binding()) is not None:
            return self._sessions.of_this_run(held)
        return self._connection.using(await self._connection.ready())

    async def _explain(self, name: str, ctx: RunContext[Any], answer: ModelRetry | ToolFailed) -> NoReturn:
        """Raise what the model is told of an error: of some the server's own words say too little."""
        asked = ASKS.search(str(answer.__cause__)) if is_mcp_error(answer.__cause__) else None
        if asked and asked[1].lower() == "elicitation":
            raise ToolFailed(
                f"The MCP server {self._id!r} asked the user for input in the middle of the call (elicitation), which "
                "is not carried. Find out first what it needs to know, and call the tool with that."
            ) from None
        if asked:
            raise ToolFailed(f"The MCP server {self._id!r} asked for a model request (sampling): refused.") from None
        if not (mcp_code(answer.__cause__) in UNKNOWN or GONE.search(str(answer))):
            raise answer
        self._changed()
        if name not in await self._listed(ctx):
            name = _called_as(name, ctx)
            raise ToolFailed(f"The tool {name!r} is gone: the MCP server {self._id!r} no longer has it.") from None
        raise answer

    async def _listed(self, ctx: RunContext[Any]) -> dict[str, ToolDefinition]:
        async with self._listing:
            if self._tools is not None and monotonic() < self._until:
                return self._tools
            changes, busy = self.changes, self._tools is not None and self._connection.busy
            try:
                self._tools = await self._list(ctx, min(WAIT, self._seconds) if busy else self._seconds)
                self._until = monotonic() + self._ttl if changes == self.changes else 0.0
            except ServerUnreachable as error:
                if self._tools is None and not self._optional:
                    raise
                logger.warning("%s Its tools are those of its last list: %s", error, sorted(self._tools or {}))
                self._until = monotonic() + AGAIN if busy else 0.0
            return self._tools or {}

    async def _list(self, ctx: RunContext[Any], limit: float) -> dict[str, ToolDefinition]:
        try:
            ready = await self._connection.ready()
            async with self._connection.using(ready) as toolset, asyncio.timeout(limit):
                tools = await toolset.get_tools(ctx)
        except AnswerLost as error:
            raise for_the_log(ServerUnreachable(str(error)), error) from None
        except Exception as error:
            if isinstance(error, ServerUnreachable):
                raise
            text = f"The MCP server {self._id!r} does not list its tools ({reason_of(error)})."
            raise for_the_log(ServerUnreachable(text), error) from None
        tools = nameable(self._id, tools, self._left_out)
        return {name: self._marked(tool.tool_def) for name, tool in tools.items()}

    def _marked(self, definition: ToolDefinition) -> ToolDefinition:
        marks = {TRUSTED: self._trusted} | ({BOUND: self._id} if self.per_run else {})
        return replace(definition, metadata={**(definition.metadata or {}), **marks})

    def _changed(self) -> None:
        self.changes += 1
        self._until = 0.0

    def _unconnected(self) -> Connection:
        return Connection(self._id, self._make, self._seconds, self._changed)

    def _make(self) -> MCPToolset[Any]:
        """A toolset that isn't connected. It reports changes to us, and then to who asked for messages."""
        source = self._source() if callable(self._source) else self._source
        options = dict(self._options)
        if not isinstance(source, Client):
            options["init_timeout"] = self._seconds
            options["message_handler"] = self._telling(options.get("message_handler"))
        return MCPToolset(source, id=self._id, cache_tools=False, **options)

    def _telling(self, also: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
        async def handle(message: Any) -> None:
            if isinstance(getattr(message, "root", message), ToolListChangedNotification):
                self._changed()
            if also is not None:
                await also(message)

        return handle


def _called_as(name: str, ctx: RunContext[Any]) -> str:
    """The name that the model has called a tool by, with its prefix; toolsets around this one take that away."""
    parts = (part for message in reversed(ctx.messages) for part in message.parts)
    calls = (part for part in parts if isinstance(part, ToolCallPart) and part.tool_call_id == ctx.tool_call_id)
    call = next(calls, None)
    return name if call is None else call.tool_name
