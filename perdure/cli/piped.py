"""A chat without a terminal: each line is a message, and its answer is printed before the next is sent."""

from __future__ import annotations

import asyncio
import uuid

from perdure.cli.chatting import Chat, end_of
from perdure.cli.display import Display
from perdure.cli.exits import OK, RUN_FAILED
from perdure.cli.keyboard import Lines
from perdure.cli.options import command
from perdure.cli.outbox import Parcel, delivered
from perdure.cli.send import print_answer
from perdure.cli.waits import Waits
from perdure.cli.watching import Watch, first


async def piped(talk: Chat, display: Display, lines: Lines, start: int) -> int:
    """The exit code: that of a failed run where one of the messages had no answer."""
    code = OK
    waits = Waits(display, talk.run.id)
    try:
        async with Watch(talk.run, display, start, see=waits.see, begun=talk.begun.wait) as watch:
            while (line := await _next(lines, watch)) is not None:
                if not await _answered(talk, display, line):
                    code = RUN_FAILED
            if talk.begun.is_set() and not watch.task.done():
                await watch.has_shown_all()
    finally:
        display.note("session", command("chat", talk.agent, "--id", talk.run.id))
    return code


async def _next(lines: Lines, watch: Watch) -> str | None:
    """The next message; `None` where there is no more, or the session has ended."""
    while True:
        reading = asyncio.create_task(lines.next())
        await first(reading, watch.task)
        if not reading.done():
            reading.cancel()
            await watch.task  # raises what it has failed with
            return None
        line = reading.result()
        if line is None or line.strip() == "/quit":
            return None
        if line.strip():
            return line.strip()


async def _answered(talk: Chat, display: Display, line: str) -> bool:
    """Send a line and print its answer; whether there is one."""
    from perdure.client import RunClosed, RunFailed

    name = uuid.uuid4().hex

    async def send() -> None:
        if line == "/close":
            await talk.run.close()
        else:
            await talk.send(line.removeprefix("/") if line.startswith("//") else line, name)

    try:
        await delivered(display, Parcel(line, send))
        if line == "/close":
            return True
        turn = await talk.run.wait_turn(message=name)
    except RunClosed:
        await talk.run.result()  # raises why it has ended, where it has failed
        raise
    try:
        print_answer(talk.run, turn)
    except RunFailed as error:
        display.note(*end_of(turn.state, turn.error) if turn.error else ("failed", str(error)))
        return False
    return True
