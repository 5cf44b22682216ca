"""What must become of messages: who is next, who joins, who ends a turn. The rules, without a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tests.talks.talk import Mode

How = Literal["running", "done", "failed", "interrupted"]


@dataclass
class Ended:
    """A turn: its number is its place."""

    messages: list[str]
    how: How = "running"


@dataclass
class Line:
    """The messages of a session, by id."""

    queue: list[tuple[str, Mode]] = field(default_factory=list[tuple[str, Mode]])
    turns: list[Ended] = field(default_factory=list[Ended])
    said: list[str] = field(default_factory=list[str])
    """Ids in the order in which the model gets to read them."""
    sent: int = 0

    @property
    def running(self) -> bool:
        """Whether a turn is."""
        return bool(self.turns) and self.turns[-1].how == "running"

    def new(self) -> str:
        """The id of the next message."""
        self.sent += 1
        return f"m{self.sent}"

    def take(self, id: str, mode: Mode) -> None:
        """A message arrives. One that interrupts is next, after others that do."""
        place = len(self.queue)
        if mode == "interrupt":
            place = next((at for at, (_, other) in enumerate(self.queue) if other != "interrupt"), place)
            if self.running:
                self.end("interrupted")
        self.queue.insert(place, (id, mode))

    def begin(self) -> None:
        """The first in line gets its turn."""
        id, _ = self.queue.pop(0)
        self.turns.append(Ended([id]))
        self.said.append(id)

    def ask(self) -> None:
        """The model is about to be asked: who steers, joins."""
        joining = [id for id, mode in self.queue if mode == "steer"]
        self.queue = [(id, mode) for id, mode in self.queue if mode != "steer"]
        self.turns[-1].messages += joining
        self.said += joining

    def end(self, how: How) -> None:
        """The running turn is over."""
        self.turns[-1].how = how
