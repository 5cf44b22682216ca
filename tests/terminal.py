"""A program that runs in a terminal of its own, and the keyboard and screen of that terminal."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from tests.command import ROOT, SECONDS
from tests.harness import until

TAKES_THE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Makes the terminal the one that controls the session, as a login does: Ctrl-C then reaches the program."""

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """What was shown so far, and the keys."""

    def __init__(self, keyboard: int) -> None:
        self.raw = ""
        """With its colours."""
        self.shown = ""
        self._keyboard = keyboard
        self._seen = 0
        self._process: asyncio.subprocess.Process | None = None

    def type(self, keys: str) -> None:
        """Press keys; `\\n` is Enter, `\\x04` Ctrl-D, `\\x03` Ctrl-C."""
        os.write(self._keyboard, keys.encode())

    async def shows(self, text: str) -> str:
        """Wait until `text` is shown after what was waited for before; what came up to it."""
        with suppress(TimeoutError):  # what is there instead is said below
            await until(lambda: text in self.shown[self._seen :] or self._ended, seconds=SECONDS)
        start, at = self._seen, self.shown.find(text, self._seen)
        assert at >= 0, f"{text!r} isn't in {self.shown[start:]!r}"
        self._seen = at + len(text)
        return self.shown[start : self._seen]

    async def end(self) -> int:
        """Wait for the end: the exit code."""
        assert self._process
        async with asyncio.timeout(SECONDS):
            code = await self._process.wait()
        self._read()
        return code

    @property
    def _ended(self) -> bool:
        return self._process is not None and self._process.returncode is not None

    async def start(self, screen: int, args: tuple[str, ...], env: dict[str, str]) -> None:
        """Start the program with this terminal as its standard streams."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", TAKES_THE_TERMINAL, *args),
            stdin=screen,
            stdout=screen,
            stderr=screen,
            cwd=ROOT,
            env=os.environ | env,
            start_new_session=True,
        )
        os.set_blocking(self._keyboard, False)
        asyncio.get_running_loop().add_reader(self._keyboard, self._read)

    def _read(self) -> None:
        with suppress(OSError):  # nothing more just now, or the program has closed the terminal
            while piece := os.read(self._keyboard, 65536):
                self.raw += piece.decode(errors="replace").replace("\r\n", "\n")
                self.shown = COLOUR.sub("", self.raw)

    async def close(self) -> None:
        """Kill the program, by its own process id, if it still runs."""
        asyncio.get_running_loop().remove_reader(self._keyboard)
        if self._process and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
            await self._process.wait()


@asynccontextmanager
async def in_a_terminal(*args: str, typed: str = "", **env: str) -> AsyncGenerator[Terminal]:
    """Run Python with these arguments in a terminal in which `typed` has been typed already."""
    keyboard, screen = pty.openpty()
    terminal = Terminal(keyboard)
    try:
        terminal.type(typed)
        await terminal.start(screen, args, env)
        yield terminal
    finally:
        await terminal.close()
        os.close(screen)
        os.close(keyboard)
