"""A connection to the server that can be cut: a TCP proxy on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


class Proxy:
    """Hands bytes to and fro between its port and `target`, as long as it isn't cut."""

    def __init__(self, target: str) -> None:
        self._host, _, self._port = target.rpartition(":")
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._own = 0
        self.connections = 0
        """How many there have been."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._own}"

    async def mend(self) -> None:
        """Take connections, on the same port as before."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._own)
        self._own = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Break off all connections, and take no new ones."""
        assert self._server
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, on = await asyncio.open_connection(self._host, int(self._port))
        self._writers += [writer, on]
        await asyncio.gather(_pump(reader, on), _pump(there, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def proxy(target: str) -> AsyncGenerator[Proxy]:
    """A proxy before `target`, cut when the block ends."""
    made = Proxy(target)
    await made.mend()
    try:
        yield made
    finally:
        made.cut()
