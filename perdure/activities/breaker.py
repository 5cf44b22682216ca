"""Circuit breakers: after failures in a row a worker stops calling a tool for a while, and lets the model know.

Each worker process has its own, one for each tool of an agent, over all its runs; nothing of it is in history. Purely
in memory, on the worker's event loop.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    ToolFailed,
    UnexpectedModelBehavior,
    UserError,
)
from temporalio.exceptions import ApplicationError

from perdure.errors import InternalError, ToolContractViolation
from perdure.policy import Breaker, seconds

PROGRAM = UserError | UnexpectedModelBehavior | ToolContractViolation | InternalError
logger = logging.getLogger("perdure.worker")
Clock = Callable[[], float]
Health = Literal["well", "ill", "unclear"]
"""What a call says of what it called. `ill`: the tool raised, or didn't end in time; `well`: it answered, also in words
that something is wrong; `unclear`: it was cancelled, or never got that far."""


@dataclass(frozen=True)
class Passage:
    """Leave to run one call, to be handed back with what became of it."""

    epoch: int
    """Of the circuit when the call began. What a call says that began before the circuit changed doesn't count."""


class Circuit:
    """The breaker of one tool. Closed, it counts failures in a row; open, it lets nothing through until its time is
    over, and then one call, the trial, which closes it or opens it for as long again.

    A trial that hasn't ended when that time has passed once more doesn't keep the next one from being made.
    """

    def __init__(self, breaker: Breaker, clock: Clock, what: str = "a tool") -> None:
        self._breaker, self._clock, self._what = breaker, clock, what
        self._failures = 0
        self._open_until: float | None = None
        self._epoch = 0

    def enter(self) -> Passage | None:
        """Leave to run a call; `None` where the circuit is open."""
        if self._open_until is not None:
            if self._clock() < self._open_until:
                return None
            self._open()  # for everybody but this call
        return Passage(self._epoch)

    def leave(self, passage: Passage, health: Health) -> None:
        """Take back what `enter` gave. A cancelled trial leaves its place to the next call."""
        if passage.epoch != self._epoch:
            return
        if self._open_until is None:
            self._count(health)
        elif health == "well":
            self._failures, self._open_until = 0, None
            self._epoch += 1
            logger.warning("the breaker of %s is closed: a trial went well", self._what)
        elif health == "ill":
            self._open()
        else:
            self._open_until = self._clock()

    def _count(self, health: Health) -> None:
        if health == "well":
            self._failures = 0
        elif health == "ill":
            self._failures += 1
            if self._failures >= self._breaker.failures:
                self._open()
                logger.warning("the breaker of %s is open after %s failures in a row", self._what, self._failures)

    def _open(self) -> None:
        self._open_until = self._clock() + (seconds(self._breaker.reset_after) or 0.0)
        self._epoch += 1


def health_of(error: Exception) -> Health:
    """What an exception of a tool says. Pydantic AI's own timeout of a tool is a `ModelRetry` made of a `TimeoutError`.

    A non-retryable `ApplicationError` ends the run because its author meant it to: the tool has answered. Errors in a
    program say nothing of what it calls.
    """
    if isinstance(error, ApprovalRequired | CallDeferred | PROGRAM):
        return "unclear"
    if isinstance(error, ModelRetry):
        return "ill" if isinstance(error.__context__, TimeoutError) else "well"
    if isinstance(error, ToolFailed) or (isinstance(error, ApplicationError) and error.non_retryable):
        return "well"
    return "ill"


class Circuits:
    """The circuits of a worker."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._circuits: dict[tuple[str, str], Circuit] = {}

    def of(self, agent: str, tool: str, breaker: Breaker | None) -> Circuit | None:
        """That of a tool of an agent; `None` where its policy has no breaker."""
        if breaker is None:
            return None
        return self._circuits.setdefault(
            (agent, tool), Circuit(breaker, self._clock, f"tool {tool!r} of agent {agent!r}")
        )
