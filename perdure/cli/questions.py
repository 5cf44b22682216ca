"""What waits for a person, asked in a chat: exactly what would run is shown, and the answer is bound to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from perdure.cli.display import Display
from perdure.cli.text import plain
from perdure.cli.waits import Place, decision, place

if TYPE_CHECKING:
    from perdure.contracts import Json, VerbName

MAX_ASKED = 20_000
"""Characters of arguments that are shown whole; of more nobody is asked here."""


@dataclass(frozen=True)
class Answer:
    """A decision that somebody has typed."""

    row: Json
    """What was shown."""
    verb: VerbName
    sent: Json


@dataclass
class Questions:
    """Asks one thing at a time."""

    display: Display
    id: str
    open: Json | None = None
    """What is asked: a row of the query `pending`."""
    wants_reason: bool = False
    """It was denied; what is typed next says why."""
    _seen: list[Place] = field(default_factory=list[Place])
    """What was answered here, or can't be."""

    @property
    def prompt(self) -> str:
        """What stands before the keyboard's line."""
        if self.open is None:
            return ""
        if self.wants_reason:
            return "why not? "
        return "y/n? " if self.open["kind"] == "approval" else "answer: "

    def update(self, pending: Sequence[Json]) -> None:
        """Take note of what waits now, and ask the first of it that wasn't."""
        before = self.open
        if before is not None and not any(self._place(row) == self._place(before) for row in pending):
            self.display.note(
                "settled", f"{before['tool']} {before['call']}: decided elsewhere, or no longer waited for"
            )
            self._close()
        if self.open is None:
            fresh = [row for row in pending if self._place(row) not in self._seen]
            self.open = next((row for row in fresh if self._ask(row)), None)

    def ask_again(self, row: Json) -> None:
        """The answer was refused."""
        self._seen.remove(self._place(row))

    def answer(self, line: str) -> Answer | None:
        """What a line means for what is asked; `None`: nothing yet, and it was said why."""
        row = self.open
        assert row is not None
        if row["kind"] == "question":
            return self._answered(row, "complete", {"result": self._choice(row, line)}) if line.strip() else None
        if self.wants_reason:
            return self._answered(row, "deny", {"reason": line.strip()})
        word, _, reason = line.strip().partition(" ")
        match word.lower():
            case "y" | "yes":
                return self._answered(row, "approve", {"reason": reason.strip()})
            case "n" | "no" if reason.strip():
                return self._answered(row, "deny", {"reason": reason.strip()})
            case "n" | "no":
                self.wants_reason = True
            case _:
                self.display.note("help", "y or n, with a reason behind it if you like; /say TEXT sends a message")
        return None

    def _answered(self, row: Json, verb: VerbName, sent: Json) -> Answer:
        self._seen.append(self._place(row))
        self._close()
        return Answer(row, verb, sent)

    def _place(self, row: Json) -> Place:
        return place(self.id, row)

    def _close(self) -> None:
        self.open, self.wants_reason = None, False

    def _ask(self, row: Json) -> bool:
        """Show what is asked; whether it can be answered here."""
        args = plain(row["args"])
        if row.get("workflow_id", self.id) != self.id:  # its arguments may be cut here
            self._seen.append(self._place(row))
            self.display.note("waiting", decision(self.id, row))
            return False
        if row["kind"] in ("external", "limit") or len(args) > MAX_ASKED:
            self._seen.append(self._place(row))
            if len(args) > MAX_ASKED:
                self.display.note(
                    "asks", f"{row['tool']} {row['call']}: more than can be shown here: see `perdure inbox`"
                )
            self.display.note("waiting", decision(self.id, row))
            return False
        if row["kind"] == "question":
            self._ask_user(row)
            return True
        self.display.note("asks", f"{row['tool']} {args}")
        who = ", ".join(row.get("approvers") or []) or "anybody"
        until = f", until {row['expires_at'][:19]} UTC" if row["expires_at"] else ""
        self.display.note("", f"call {row['call']}, {who} may decide{until}")
        return True

    def _ask_user(self, row: Json) -> None:
        self.display.note("question", str(_args(row).get("question") or plain(row["args"])))
        for number, choice in enumerate(_choices(row), 1):
            self.display.note("", f"{number}  {choice}")

    def _choice(self, row: Json, line: str) -> str:
        """A choice by its number, or the text."""
        choices, text = _choices(row), line.strip()
        return choices[int(text) - 1] if text in map(str, range(1, len(choices) + 1)) and text not in choices else text


def _choices(row: Json) -> list[str]:
    return [str(choice) for choice in cast("list[Any]", _args(row).get("choices") or [])]


def _args(row: Json) -> Json:
    return cast("Json", row["args"]) if isinstance(row["args"], dict) else {}
