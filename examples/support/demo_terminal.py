"""What the demo says, and what it asks at the terminal: without a thread, so nothing hangs when it stops asking."""

import asyncio
import os
import sys
import termios
from collections.abc import Callable

CHUNK = 4096


def say(text: str) -> None:
    """A line for the person who watches. What a terminal would obey instead of show is replaced."""
    shown = (each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in text)
    print("".join(shown), flush=True)


def attended(fd: int) -> bool:
    """Whether somebody could answer: a terminal, and this process is the one that it belongs to just now."""
    if not os.isatty(fd):
        return False
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return True  # a terminal that controls no session: nobody can put this process into its background


async def ask(prompt: str, fd: int) -> str:
    """The next line that is typed, without spaces around it. What was typed before the prompt is no answer to it.

    May be cancelled: the question is withdrawn then. Raises `EOFError` where the terminal's input is closed.
    """
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str] = loop.create_future()
    termios.tcflush(fd, termios.TCIFLUSH)
    sys.stdout.write(prompt)
    sys.stdout.flush()
    loop.add_reader(fd, _reader(fd, typed))
    try:
        return await typed
    except (asyncio.CancelledError, EOFError):
        say("")  # the cursor still stands behind the prompt
        raise
    finally:
        loop.remove_reader(fd)


def _reader(fd: int, typed: asyncio.Future[str]) -> Callable[[], None]:
    """What is called when the terminal has something: it hands over a line in one piece, so a read never waits."""
    line = bytearray()

    def read() -> None:
        try:
            piece = os.read(fd, CHUNK)
        except OSError:
            piece = b""  # the terminal is gone
        line.extend(piece)
        if typed.done():
            return
        if not piece:
            typed.set_exception(EOFError())
        elif b"\n" in line:
            typed.set_result(line.decode(errors="replace").partition("\n")[0].strip())

    return read
