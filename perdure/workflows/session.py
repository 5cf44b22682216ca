"""The turns of a run, one after the other, until there is nothing left to answer."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Literal

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Fault, Output
    from perdure.errors import LimitExceeded, PerdureError, TranscriptTooLarge
    from perdure.workflows import clock, contents, details, rollover, turns
    from perdure.workflows.clock import Deadline
    from perdure.workflows.entry import as_failure
    from perdure.workflows.rollover import RollOver
    from perdure.workflows.state import RunState
    from perdure.workflows.turn import run_turn


async def run_session(state: RunState) -> None:
    """Run turns until the session is closed, or no message waits. Raises what ends the run, or `RollOver`."""
    while state.in_turn or await _next_message(state):
        if not state.in_turn:
            await contents.check_first(state)
            turns.begin(state)
        details.begins(state)
        await _one_turn(state)


async def _next_message(state: RunState) -> bool:
    """Wait for a message; whether there is one."""
    while not state.queue:
        if state.closing or not state.is_session:
            return False
        if state.idle_since is None:
            state.idle_since = workflow.now()
            clock.tick(state)
        details.begins(state)
        await _something(state)
        if rollover.ready(state):
            await rollover.roll_at_rest(state)
    return True


async def _something(state: RunState) -> None:
    """Wait until the session isn't idle any more, or has been for too long: then it closes."""
    idle = state.request.session.idle_timeout if state.request and state.request.session else None
    left: timedelta | None = None
    if idle is not None and state.idle_since is not None:
        left = idle - (workflow.now() - state.idle_since)

    def came() -> bool:
        return bool(state.queue) or state.closing or rollover.ready(state)

    if came():
        return
    try:
        if left is not None and left <= timedelta(0):
            raise TimeoutError
        await workflow.wait_condition(came, timeout=left)
    except TimeoutError:
        state.closing = state.closing or not state.queue


async def _one_turn(state: RunState) -> None:
    if state.refused_message:
        turns.end(state, "failed", error=Fault(type="InvalidRequest", message=state.refused_message))
        return
    try:
        output = await _supervised(state)
    except asyncio.CancelledError:
        if state.stopping != "interrupted":
            if workflow.cancellation_reason() is not None:
                turns.end(state, "interrupted", error=Fault(type="Cancelled", message="the run was cancelled"))
            raise
        turns.end(state, "interrupted", error=state.interrupt)
    except ApplicationError as error:
        _failed(state, error)
    except PerdureError as error:
        _failed(state, as_failure(error))
    else:
        turns.end(state, "done", output=output)


def _failed(state: RunState, error: ApplicationError) -> None:
    """A turn has failed. A session goes on, and so does a run for which messages wait; any other ends with it."""
    turns.end(state, "failed", error=Fault(type=error.type or "", message=error.message, details=list(error.details)))
    if error.type == TranscriptTooLarge.__name__ or not (state.is_session or state.queue):
        raise error


async def _supervised(state: RunState) -> Output:
    """The output of the running turn. It is a task of its own, so that it can be ended while the run goes on."""
    task = asyncio.create_task(run_turn(state))
    ends: Deadline | None = None

    def stirs() -> bool:
        if task.done() or state.interrupt is not None or rollover.ready(state):
            return True
        return clock.next_deadline(state) != ends  # it was set anew, or the clock stands still or goes on

    while not task.done():
        ends = clock.next_deadline(state)
        left = None if ends is None else ends.moment - workflow.now()
        try:
            if left is not None and left <= timedelta(0):
                raise TimeoutError
            await workflow.wait_condition(stirs, timeout=left)
            if not task.done() and state.interrupt is None and rollover.ready(state):
                await rollover.roll_at_rest(state)
        except RollOver:
            if not task.done():  # it may have come to its end while room was made
                raise
        except TranscriptTooLarge:
            await _ended(task, state, "deadline")
            raise
        except TimeoutError:
            await _ended(task, state, "deadline")
            raise LimitExceeded(ends.reached(ends.moment).message if ends else "the deadline has passed") from None
        except asyncio.CancelledError:
            if workflow.cancellation_reason() is not None:  # else the worker only forgets this instance
                await _ended(task, state, "")
            raise
        if not task.done() and state.interrupt is not None:
            await _ended(task, state, "interrupted")
    return task.result()


async def _ended(task: asyncio.Task[Output], state: RunState, why: Literal["", "deadline", "interrupted"]) -> None:
    """End the turn, and wait until every call has its outcome. A cancel of the run that comes meanwhile is raised."""
    state.stopping = why
    task.cancel()
    cancelled = False
    while not task.done():
        try:
            await workflow.wait_condition(task.done)
        except asyncio.CancelledError:
            if workflow.cancellation_reason() is None:
                raise
            cancelled, state.stopping = True, ""
    if cancelled:
        raise asyncio.CancelledError
    if why == "deadline" and not task.cancelled():
        task.exception()  # the deadline is what ends the turn, whatever else did meanwhile
