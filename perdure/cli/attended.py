"""A chat at a terminal: the keyboard, what is sent and what comes, side by side."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from perdure.cli.chatting import Chat
from perdure.cli.display import Display
from perdure.cli.exits import INTERRUPTED, OK
from perdure.cli.keyboard import Keyboard, Lines
from perdure.cli.options import command
from perdure.cli.start import written
from perdure.cli.watching import Watch, ended, first

if TYPE_CHECKING:
    from perdure.client import Progress


class Attended:
    """One chat, from its beginning to when it is left or its session ends."""

    def __init__(self, talk: Chat, display: Display, lines: Lines) -> None:
        self._talk = talk
        self._display = display
        self._lines = lines
        self._draft = ""
        """What had been typed when a question came: it isn't the answer."""
        self._asked = ""
        """The key of what is asked."""
        self._left: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._pressed = False
        """Ctrl-C, and nothing was entered since."""
        self._prints = not sys.stdout.isatty()
        display.footer = lambda: talk.footer(lines.typed) if isinstance(lines, Keyboard) else ()

    async def run(self, start: int) -> int:
        """The exit code. Raises `RunFailed` where the session ends without a result."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._leave, 128 + number)
        if isinstance(self._lines, Keyboard):
            loop.add_signal_handler(signal.SIGCONT, self._lines.take_over)
        async with Watch(self._talk.run, self._display, start, see=self._see, begun=self._talk.begun.wait) as watch:
            sending, reading = asyncio.create_task(self._talk.outbox.run()), asyncio.create_task(self._read())
            try:
                self._display.refresh()
                await first(watch.task, sending, reading, self._left)
                for task in (reading, sending):
                    if task.done():
                        task.result()
                if self._left.done():
                    return self._goodbye(self._left.result())
                await watch.task
            finally:
                await ended(sending, reading)
        return await self._end()

    async def _read(self) -> None:
        while (line := await self._lines.next()) is not None:
            self._pressed = False
            if self._talk.enter(line):
                break
            self._talk.ask()
            self._make_room()
            self._display.refresh()
        self._leave(OK)
        await asyncio.Event().wait()

    def _see(self, progress: Progress) -> None:
        if self._prints:
            for output in self._talk.answers(progress):
                print(written(output), flush=True)
        self._talk.see(progress)
        self._make_room()
        self._display.refresh()

    def _make_room(self) -> None:
        """Put aside what was being typed when a question comes, and take it up again when none is left."""
        asked = str(self._talk.questions.open["call"]) if self._talk.questions.open else ""
        if asked != self._asked and isinstance(self._lines, Keyboard):
            if not self._asked:
                self._draft = self._lines.typed
            self._lines.typed = "" if asked else self._draft
        self._asked = asked

    def _interrupt(self) -> None:
        """Ctrl-C: ends the running turn; once more, leaves."""
        if self._pressed:
            self._leave(INTERRUPTED)
            return
        self._pressed = True
        if self._talk.is_busy:
            self._talk.interrupt()
        self._display.note("help", "Ctrl-C once more leaves, and lets the session go on")

    def _leave(self, code: int) -> None:
        if not self._left.done():
            self._left.set_result(code)

    def _goodbye(self, code: int) -> int:
        for what in self._talk.outbox.waiting:
            self._display.note("not sent", what)
        if self._talk.begun.is_set():
            back = command("chat", self._talk.agent, "--id", self._talk.run.id)
            self._display.note("session", f"goes on without you; back to it: {back}")
        return code

    async def _end(self) -> int:
        await self._talk.run.result()
        self._display.note("session", f"has ended: {command('show', self._talk.run.id)}")
        return OK
