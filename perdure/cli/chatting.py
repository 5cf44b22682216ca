"""A chat with a session: what is typed or piped in, and what becomes of it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from perdure.cli.decide import own_token, said
from perdure.cli.display import Display
from perdure.cli.outbox import Outbox
from perdure.cli.questions import Answer, Questions
from perdure.cli.text import plain, printable

if TYPE_CHECKING:
    from perdure.client import PerdureClient, Progress, RunHandle
    from perdure.contracts import Fault, Json, StatusView, TurnView, WhenBusy

HELP = """TEXT             a message; while a turn runs, it waits for its own
/steer TEXT      a message that joins the running turn
/interrupt TEXT  end the running turn; the text, if there is one, is the next message
/say TEXT        a message, also while something is asked; //TEXT sends /TEXT
/close           let the session end
/quit            leave, and let the session go on; so does Ctrl-D
Ctrl-C           end the running turn; twice: leave"""
BUSY = ("running", "waiting", "closing")
"""States in which a turn may run."""


def end_of(state: str, error: Fault) -> tuple[str, str]:
    """The line that says why a turn has no answer."""
    interrupted = state == "interrupted"
    return ("ended", f"interrupted: {error.message}") if interrupted else ("failed", f"{error.type}: {error.message}")


class Chat:
    """One session, one person. `asked` is what `PerdureClient.send` needs to start it, where `is_new`."""

    def __init__(self, client: PerdureClient, run: RunHandle, display: Display, asked: Json, *, is_new: bool) -> None:
        self.run = run
        self.agent = str(asked["agent"])
        self.begun = asyncio.Event()
        """Set when something is sent, or was before."""
        self.outbox = Outbox(display)
        self.questions = Questions(display, run.id)
        self._client = client
        self._display = display
        self._asked = asked
        self._by = str(asked.get("by") or "")
        self._is_new = is_new
        self._status: StatusView | None = None
        self._skips = not is_new
        """The turn that was over when the chat was resumed."""
        if not is_new:
            self.begun.set()

    async def send(self, text: str, name: str, when_busy: WhenBusy = "queue") -> TurnView:
        """Send a message, and start the session with the first one."""
        self.begun.set()
        if not self._is_new:
            return await self.run.send(text, when_busy=when_busy, id=name, by=self._by)
        more: Json = {"when_busy": when_busy, "message_id": name, **self._asked}
        _, sent = await self._client.send(content=text, id=self.run.id, **more)
        self._is_new = False
        return sent

    def enter(self, line: str) -> bool:
        """Do what a line says; whether it says to leave."""
        text = line.strip()
        if text.startswith("/") and not text.startswith("//"):
            return self._command(*text[1:].partition(" ")[::2])
        if self.questions.open is not None:
            if answer := self.questions.answer(line):
                self._decide(answer)
        elif text:
            self.say(text.removeprefix("/") if text.startswith("//") else text)
        return False

    def say(self, text: str, when_busy: WhenBusy = "queue") -> None:
        """Put a message into the outbox."""
        name = uuid.uuid4().hex

        async def send() -> None:
            sent = await self.send(text, name, when_busy)
            if sent.state == "queued" and self.is_busy and when_busy != "interrupt":
                how = "waits for its turn" if when_busy == "queue" else "joins the running turn"
                self._display.note("queued", f"{text} ({how})")

        self.outbox.put(text, send)

    def interrupt(self) -> None:
        """End the running turn."""

        async def send() -> None:
            await self.run.interrupt(by=self._by)

        self.outbox.put("interrupt", send)

    @property
    def is_busy(self) -> bool:
        """Whether a turn may be running."""
        return self._status is not None and self._status.state in BUSY

    def answers(self, progress: Progress) -> list[Any]:
        """The outputs of turns that are over now. Asked before `see`."""
        return [turn.output.value for turn in progress.turns if turn.ended and turn.output and not self._skips]

    def see(self, progress: Progress) -> None:
        """Take note of a look at the session, and ask what waits now."""
        for turn in progress.turns:
            if turn.ended and not self._skips:
                self._ended(turn)
        if progress.status is not None:
            self._skips, self._status = False, progress.status
            self.ask()

    def _command(self, name: str, text: str) -> bool:
        text = text.strip()
        match name:
            case "quit":
                return True
            case "steer" | "say" if text:
                self.say(text, "steer" if name == "steer" else "queue")
            case "interrupt" if text:
                self.say(text, "interrupt")
            case "interrupt":
                self.interrupt()
            case "close":
                self._close()
            case "help":
                self._display.note("help", HELP)
            case _:
                self._display.note(
                    "help", f"there is no /{name} {'without a text' if name in ('steer', 'say') else ''}"
                )
                self._display.note("help", HELP)
        return False

    def _close(self) -> None:
        async def send() -> None:
            await self.run.close(by=self._by)

        if self._is_new:
            self._display.note("help", "the session hasn't begun: /quit leaves")
        else:
            self.outbox.put("close", send)

    def _decide(self, answer: Answer) -> None:
        row = answer.row
        sent: Json = {"by": self._by, "token": "", **answer.sent}

        async def send() -> None:
            from perdure.client import ClientError
            from perdure.errors import InvalidRequest

            try:
                token = own_token(self.run.id, row, answer.verb, sent) if row["verifies"] else ""
                decided = await self.run.decide(answer.verb, row["call"], {**sent, "token": token})
            except (ClientError, InvalidRequest):
                self.questions.ask_again(row)
                raise
            self._display.note("decided", said(row, sent, decided))

        self.outbox.put(f"{answer.verb} {row['call']}", send)

    def ask(self) -> None:
        """Ask what waits still, as far as is known."""
        if self._status is not None:
            self.questions.update(self._status.pending)

    def _ended(self, turn: TurnView) -> None:
        if turn.error is not None:
            self._display.note(*end_of(turn.state, turn.error))
        elif turn.output is not None and not isinstance(turn.output.value, str):
            self._display.note("answer", plain(turn.output.value))

    def footer(self, typed: str) -> Sequence[Text]:
        """What stands below everything: what is on its way, and the keyboard's line."""
        lines = [Text(f"sending: {printable(what)}", style="dim") for what in self.outbox.waiting]
        return [*lines, Text.assemble((self.questions.prompt or "> ", "bold"), printable(typed), (" ", "reverse"))]
