"""When a run continues as new: as soon as Temporal suggests it, at a moment when nothing is being done.

`RollOver` is raised between two steps, while a call waits, or while a session is idle. No activity is open then, no
handler runs, and everything that is known is in the state. See `carry` for what goes along.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.errors import RollingOver
    from perdure.workflows.carry import make_room
    from perdure.workflows.state import RunState


MOMENT = timedelta(milliseconds=1)
AT_LAST = 20_000
"""Events of a history, of which the server allows 51,200."""


class RollOver(Exception):
    """The run should continue as new now. Never leaves the workflow."""


def due(state: RunState) -> bool:
    """Whether Temporal suggests it and something was done since the last time: a carry that is large by itself would
    else roll over for nothing."""
    return state.progressed and workflow.info().is_continue_as_new_suggested()


def at_rest(state: RunState) -> bool:
    """Whether nothing is being done, but for handlers."""
    resting = state.leaving == 0 and all(waiting.is_at_rest for waiting in state.waiting.values())
    return state.activities == 0 and resting and state.interrupt is None and not state.failing


def ready(state: RunState) -> bool:
    """Whether a run in which something waits should continue as new now. Refuses what comes until it has."""
    if not (due(state) and at_rest(state)):
        state.rolling = False
        return False
    state.rolling = True
    return workflow.all_handlers_finished()


async def between_steps(state: RunState) -> None:
    """Raise `RollOver` where it is due and nothing else is under way; a notification, say, doesn't hold up a step."""
    if not (due(state) and at_rest(state)):
        return
    state.rolling = True
    if not workflow.all_handlers_finished():
        await workflow.wait_condition(workflow.all_handlers_finished)
    await roll(state)
    state.rolling = False


async def roll_at_rest(state: RunState) -> None:
    """Raise `RollOver`, unless something comes within a moment. Raises `TranscriptTooLarge`.

    Signals and updates are handed over before a cancel that came in the same workflow task, which the next run of the
    chain would never hear of. A timer fires together with it at the earliest. In a run that is sent something all the
    time that moment may never come: then it isn't waited for any longer.
    """
    if workflow.info().get_current_history_length() < AT_LAST:
        await workflow.sleep(MOMENT)
    if ready(state):
        await roll(state)


async def roll(state: RunState) -> None:
    """Raise `RollOver`, unless something begins while room is made for it. Raises `TranscriptTooLarge`."""
    await make_room(state)
    if at_rest(state) and workflow.all_handlers_finished():
        raise RollOver


def refuse_while_rolling(state: RunState) -> None:
    """Raise `RollingOver` to who sends an update now."""
    if state.rolling:
        raise RollingOver("the run is continuing as new: send it again")
