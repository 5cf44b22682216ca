"""Lines that are typed or piped in, while other things go on: nothing here blocks, and no thread holds up the end."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import termios
import threading
from collections.abc import Callable
from types import TracebackType

CHUNK = 4096
KEYS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?|.", re.S)
"""One key: a letter, or what arrows and the like send."""


class Lines:
    """The lines of standard input, one after the other; `None` is its end."""

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._part = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def next(self) -> str | None:
        """The next line, without its end."""
        return await self._lines.get()

    def __enter__(self) -> Lines:
        """Read in a thread that nobody waits for: files can't be watched, and a pipe may never end."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read_all, args=(loop,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to give back."""

    def _read_all(self, loop: asyncio.AbstractEventLoop) -> None:
        piece = b"more"
        while piece:
            try:
                piece = os.read(self._fd, CHUNK)
            except OSError:
                piece = b""
            try:
                loop.call_soon_threadsafe(self._take, piece)
            except RuntimeError:  # the loop is closed: nobody listens any more
                return

    def _take(self, piece: bytes) -> None:
        *lines, self._part = (self._part + self._decoder.decode(piece, final=not piece)).split("\n")
        for line in [*lines, *([self._part] if not piece and self._part else [])]:
            self._lines.put_nowait(line.removesuffix("\r"))
        if not piece:
            self._lines.put_nowait(None)


class Keyboard(Lines):
    """A terminal whose keys come one by one, so that what is typed can be shown below what changes.

    `changed` is called when it is to be shown anew. Ctrl-C stays a signal. The terminal is as before after the block.
    """

    def __init__(self, changed: Callable[[], None], fd: int = 0) -> None:
        super().__init__(fd)
        self.typed = ""
        """The line so far."""
        self._changed = changed
        self._before = termios.tcgetattr(fd)

    def __enter__(self) -> Keyboard:
        self.take_over()
        asyncio.get_running_loop().add_reader(self._fd, self._read)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        termios.tcsetattr(self._fd, termios.TCSANOW, self._before)

    def take_over(self) -> None:
        """Have keys handed over as they are pressed, unseen; also after a shell has had the terminal meanwhile."""
        mode = termios.tcgetattr(self._fd)
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self._fd, termios.TCSANOW, mode)

    def _read(self) -> None:
        try:
            piece = os.read(self._fd, CHUNK)
        except OSError:
            piece = b""  # the terminal is gone
        if not piece:
            asyncio.get_running_loop().remove_reader(self._fd)
            self._lines.put_nowait(None)
        for key in KEYS.findall(self._decoder.decode(piece)):
            self._press(key)
        self._changed()

    def _press(self, key: str) -> None:
        match key:
            case "\n" | "\r":
                self._lines.put_nowait(self.typed)
                self.typed = ""
            case "\x7f" | "\x08":
                self.typed = self.typed[:-1]
            case "\x15":  # Ctrl-U
                self.typed = ""
            case "\x17":  # Ctrl-W
                self.typed = re.sub(r"\S*\s*$", "", self.typed)
            case "\x04" if not self.typed:  # Ctrl-D
                self._lines.put_nowait(None)
            case "\t":
                self.typed += " "
            case _ if key >= " ":
                self.typed += key
            case _:
                pass
