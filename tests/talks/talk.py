"""What is drawn: the turns of a session and what people do at each moment at which it stands still. Plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hypothesis import strategies as st

Tool = Literal["look", "write", "alone", "moody", "gated", "quorum", "gated_alone", "hold"]
"""`alone` and `gated_alone` are sequential; `moody` asks the model to try again; `hold` runs until it is let go on."""
GATED: tuple[Tool, ...] = ("gated", "quorum", "gated_alone")
Mode = Literal["queue", "steer", "interrupt"]
Way = Literal["update", "signal"]


@dataclass(frozen=True)
class Call:
    """A call of the model, and what becomes of it where people decide."""

    tool: Tool = "look"
    decision: Literal["yes", "no", "edited"] = "yes"
    via: Way = "update"


@dataclass(frozen=True)
class Send:
    """A message. `again`: its id is sent once more, with other contents; `old`: an id that was sent before."""

    mode: Mode = "queue"
    via: Way = "update"
    again: bool = False
    old: bool = False


@dataclass(frozen=True)
class Interrupt:
    """The running turn is to end."""

    via: Way = "update"


@dataclass(frozen=True)
class Restart:
    """The worker is stopped, so many messages are sent to nobody, another worker is started."""

    messages: int = 0


@dataclass(frozen=True)
class Push:
    """Events are made until the run continues as new, where the server suggests it."""


Act = Send | Interrupt | Restart | Push


@dataclass(frozen=True)
class Step:
    """A response with calls."""

    calls: tuple[Call, ...]
    asked: tuple[Act, ...] = ()
    """Done before the model answers."""
    rest: tuple[Act, ...] = ()
    """Done when everything that can run has run, and something waits or is held."""


@dataclass(frozen=True)
class Turn:
    """What the model does in a turn."""

    steps: tuple[Step, ...] = ()
    last: tuple[Act, ...] = ()
    """Done before the model gives its last answer."""
    fails: bool = False
    """Whether it gives none: the turn fails."""
    idle: tuple[Act, ...] = ()
    """Done before the turn's message is sent, where none waits."""
    message: Send = Send()


@dataclass(frozen=True)
class Talk:
    """A session. The n-th turn does what the n-th of these says, whichever message began it; further ones only talk."""

    turns: tuple[Turn, ...]
    prompt: bool = True
    """Whether the session is started with its first message."""
    cache: int = 1000
    """Of the workers that are restarted."""


def acts(talk: Talk) -> Iterator[Act]:
    """Everything that is done in a session."""
    for turn in talk.turns:
        yield from turn.idle
        yield turn.message
        for step in turn.steps:
            yield from (*step.asked, *step.rest)
        yield from turn.last


ways = st.sampled_from(["update", "signal"])
sends = st.builds(
    Send,
    mode=st.sampled_from(["queue", "steer", "queue", "steer", "interrupt"]),
    via=ways,
    again=st.sampled_from([False, False, True]),
    old=st.sampled_from([False, False, False, True]),
)
firsts = st.builds(Send, mode=st.sampled_from(["queue", "steer", "interrupt"]), via=ways, again=st.booleans())
interrupts = st.builds(Interrupt, via=ways)
restarts = st.builds(Restart, messages=st.sampled_from([0, 0, 1, 2]))
pushes = st.just(Push())
while_asked = st.lists(st.one_of(sends, sends, restarts, interrupts), max_size=2).map(tuple)
while_resting = st.lists(st.one_of(sends, pushes, restarts, sends, interrupts), max_size=3).map(tuple)
while_idle = st.lists(st.one_of(pushes, restarts), max_size=2).map(tuple)
calls = st.builds(
    Call,
    tool=st.sampled_from(["look", "gated", "write", "quorum", "gated", "alone", "moody", "gated_alone", "hold"]),
    decision=st.sampled_from(["yes", "no", "edited"]),
    via=ways,
)
no_acts = st.just(())
steps = st.builds(
    Step,
    calls=st.lists(calls, min_size=1, max_size=4).map(tuple),
    asked=st.one_of(no_acts, no_acts, while_asked),
    rest=while_resting,
)
turns = st.builds(
    Turn,
    steps=st.lists(steps, max_size=2).map(tuple),
    last=st.one_of(no_acts, while_asked),
    fails=st.sampled_from([False, False, False, True]),
    idle=st.one_of(no_acts, while_idle),
    message=firsts,
)
talks = st.builds(
    Talk,
    turns=st.lists(turns, min_size=1, max_size=4).map(tuple),
    prompt=st.booleans(),
    cache=st.sampled_from([1000, 0]),
)
