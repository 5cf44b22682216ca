"""What a chat sends: one thing after the other, in order, over lost connections, without holding up the keyboard."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from perdure.cli.display import Display

PAUSE = 1.0
"""Seconds before what couldn't be sent is sent again."""


@dataclass(frozen=True)
class Parcel:
    """Something to send."""

    what: str
    """Shown while it is on its way."""
    send: Callable[[], Awaitable[None]]
    """May be called again: a repeat changes nothing."""


class Outbox:
    """Sends what is put in. What is refused is said, and then forgotten."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._parcels: deque[Parcel] = deque()
        self._more = asyncio.Event()

    @property
    def waiting(self) -> list[str]:
        """What is on its way."""
        return [parcel.what for parcel in self._parcels]

    def put(self, what: str, send: Callable[[], Awaitable[None]]) -> None:
        """Send it when all before it is sent."""
        self._parcels.append(Parcel(what, send))
        self._more.set()
        self._display.refresh()

    async def run(self) -> None:
        """Send until cancelled. Raises what isn't an answer to what was sent."""
        while True:
            while self._parcels:
                await self._deliver(self._parcels[0])
                self._parcels.popleft()
                self._display.refresh()
            self._more.clear()
            await self._more.wait()

    async def _deliver(self, parcel: Parcel) -> None:
        from perdure.client import ClientError
        from perdure.errors import InvalidRequest

        try:
            await delivered(self._display, parcel)
        except (ClientError, InvalidRequest) as error:
            self._display.note("refused", f"{parcel.what}: {error}")


async def delivered(display: Display, parcel: Parcel) -> None:
    """Send it, again and again while the server is away. Raises what it is answered with, and what another try doesn't
    mend."""
    from temporalio.service import RPCError

    from perdure.client.asking import passes

    told = False
    while True:
        try:
            return await parcel.send()
        except RPCError as error:
            if not passes(error):
                raise
        if not told:
            display.note("waiting", f"{parcel.what}: the server is away, trying again")
        told = True
        await asyncio.sleep(PAUSE)
