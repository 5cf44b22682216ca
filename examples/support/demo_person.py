"""The person at the terminal: what they are asked, and what is done where nobody answers."""

import asyncio
import getpass
from dataclasses import dataclass, field
from typing import Literal

from .demo_facts import Row, moment
from .demo_terminal import ask, attended, say
from .rules import money

UNATTENDED = "demo"
"""Who denies where nobody answers."""


def user() -> str:
    """The name of the user of this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        return "somebody"


@dataclass(frozen=True)
class Answer:
    """What a person said."""

    verb: Literal["approve", "deny"]
    by: str
    reason: str = ""
    args: Row | None = None
    """Other arguments than those that were asked for."""


@dataclass
class Person:
    """Whoever sits at the terminal `fd`, and has `seconds` for each answer."""

    seconds: float
    fd: int = 0
    name: str = field(default_factory=user)
    away: bool = False
    """Nobody answered the last question."""

    async def answer(self, row: Row) -> Answer:
        """Ask about what waits. Where nobody answers, nothing is approved."""
        self.away = False
        if not attended(self.fd):
            return self._nobody("Nobody can be asked: standard input isn't a terminal", row)
        try:
            return await self._asked(row)
        except TimeoutError:
            return self._nobody(f"Nobody answered within {self.seconds:g} s", row)
        except EOFError:
            return self._nobody("Nobody can be asked any more: the terminal's input is closed", row)

    async def _asked(self, row: Row) -> Answer:
        args = row["args"]
        choices = "[y/n/e(dit)]" if row["allow_edit"] else "[y/n]"
        question = f"Approve this refund of {money(args['cents'])} for order {args['order_id']}? {choices} "
        say(f"  You have {self.seconds:g} s for each answer; without one it is denied.")
        while True:
            match (await self._line(question)).lower():
                case "y" | "yes":
                    return Answer("approve", self.name)
                case "n" | "no":
                    return Answer("deny", self.name, await self._line("Why not? The customer is told: "))
                case "e" | "edit" if row["allow_edit"]:
                    return Answer("approve", self.name, args=args | {"cents": await self._cents(args["cents"])})
                case _:
                    say(f"  Please answer one of {choices}.")

    async def _cents(self, asked: int) -> int | str:
        """What was typed: whether it is an amount that may be paid is for the agent's tool to say."""
        typed = await self._line(f"How many cents instead of {asked}? ")
        return int(typed) if typed.isdecimal() else typed

    async def _line(self, prompt: str) -> str:
        async with asyncio.timeout(self.seconds):
            return await ask(f"  {prompt}", self.fd)

    def _nobody(self, why: str, row: Row) -> Answer:
        self.away = True
        ends = row["expires_at"]
        until = f"{moment(ends)}, then the model is told that nobody decided" if ends else "somebody decides"
        say(f"  {why}. In production the run would go on waiting until {until}.")
        say("  The demo has to end and approves nothing by itself: it denies.")
        return Answer("deny", UNATTENDED, "nobody was there to decide")
