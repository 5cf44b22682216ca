"""The deadlines of a run and of its turns, and the time that doesn't count for them.

Moments are absolute; what doesn't count is added to them. So nothing begins anew when the run continues as new.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.workflows.budget import Reached
    from perdure.workflows.state import RunState


@dataclass(frozen=True)
class Deadline:
    """When a limit of time is reached, as the clock stands."""

    limit: str
    what: str
    moment: datetime
    allowed: timedelta

    def reached(self, now: datetime) -> Reached:
        """That it is reached."""
        used = max(self.allowed, self.allowed + (now - self.moment))
        return Reached(self.limit, used, self.allowed, f"the {self.what}'s deadline of {self.allowed} has passed")


def tick(state: RunState) -> None:
    """Stop the clock, or let it go on, where something has begun or ended to wait for people."""
    if state.plan is None or not state.plan.deadline_pauses:
        return
    now = workflow.now()
    if _waits(state):
        state.waiting_since = state.waiting_since or now
    elif state.waiting_since is not None:
        state.waited += now - state.waiting_since
        state.waiting_since = None


def _waits(state: RunState) -> bool:
    """Whether the run waits for people: something waits and no call runs, or a session waits for a message."""
    if state.in_turn:
        return state.only_waits
    return state.is_session and not state.queue


def next_deadline(state: RunState) -> Deadline | None:
    """The deadline that comes first, where it ends the turn by itself and the clock isn't stopped."""
    asks = state.plan is not None and state.plan.on_limit == "ask"
    own = [] if asks or state.waiting_since is not None else _deadlines(state)
    return min([*_given(state), *own], key=lambda deadline: deadline.moment, default=None)


def _given(state: RunState) -> list[Deadline]:
    """The time that the run above has left for this one: nobody here can raise it, and it never stands still."""
    within = state.request.within if state.request else None
    allowed = within.room.deadline if within else None
    if allowed is None or state.started is None:
        return []
    return [Deadline("deadline", "run above", state.started + allowed, allowed)]


def first(state: RunState) -> Deadline | None:
    """The deadline that comes first, whatever becomes of the turn then."""
    return min(_deadlines(state), key=lambda deadline: deadline.moment, default=None)


def passed(state: RunState) -> Reached | None:
    """A deadline that has passed."""
    now = workflow.now()
    stopped = now - state.waiting_since if state.waiting_since is not None else timedelta(0)
    found = (deadline for deadline in _deadlines(state) if deadline.moment + stopped <= now)
    return next((deadline.reached(now - stopped) for deadline in found), None)


def _deadlines(state: RunState) -> list[Deadline]:
    found: list[Deadline] = []
    limits = state.limits
    if limits.deadline is not None and state.started is not None:
        found.append(Deadline("deadline", "run", state.started + limits.deadline + state.waited, limits.deadline))
    if limits.turn_deadline is not None and state.in_turn:
        began = datetime.fromisoformat(state.turns[-1].began) + state.waited - state.turn_waited
        found.append(Deadline("turn_deadline", "turn", began + limits.turn_deadline, limits.turn_deadline))
    return found
