"""Follow a run: one look after the other, by query and heartbeat, so that nothing of it is in the run's history.

The server is asked what it knows, which costs a worker nothing; workers are asked only where something has changed. The
position in the transcript is the reader's own, so it stays where it is over a lost connection, a worker that is gone,
and a run that continues as new.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.service import RPCError, RPCStatusCode

from perdure.client.asking import LOST, Asking, is_open, passes
from perdure.client.errors import ClientError, NoAnswer
from perdure.client.unserved import Unserved
from perdure.client.views import LiveText, Progress
from perdure.contracts import Json, StatusView, TranscriptPage, TurnView

POLL = 0.15
"""Seconds between two looks at a run that is followed."""
SLOWER = 1.5
"""Each look that finds nothing going on is so much later than the one before …"""
SLOWEST = 6
"""… but no later than so many times the first pause."""
BEFORE = TurnView(state="queued")
"""Where no turn had begun yet."""


@dataclass
class Position:
    """How far a reader has come."""

    start: int
    """Entries that it has, or doesn't want."""
    known: tuple[str, int] = ("", -1)
    """Run id and length of the history at the last look that told all there was."""
    turn: TurnView | None = None
    """The latest turn that it was told of."""


async def follow(asking: Asking, start: int, every: float) -> AsyncIterator[Progress]:
    """Look at a run until it has ended. Faults that pass are told in `Progress.why`, and nothing is lost by them.

    Raises `NoSuchRun`, and what another try doesn't mend.
    """
    position, pause, unserved = Position(start), every, Unserved(asking.client)
    while True:
        try:
            described = await asking.describe(retry=False)
            changed = _place(described) != position.known
            await unserved.look(described)
            async for progress in _look(asking, position, described):
                yield replace(progress, unserved=unserved.lines)
        except RPCError as error:
            if not passes(error):
                raise
            yield Progress([], [], False, _lost(asking, error), position.start, unserved=unserved.lines)
            pause = every * SLOWEST
        else:
            if not is_open(described.workflow_execution_info):
                return
            pause = every if changed or described.pending_activities else min(pause * SLOWER, every * SLOWEST)
        await asyncio.sleep(pause)


async def _look(
    asking: Asking, position: Position, described: DescribeWorkflowExecutionResponse
) -> AsyncIterator[Progress]:
    """What is new since the last look: page by page, the last one with what is being said."""
    if _place(described) == position.known:
        yield Progress([], await asking.live(described), True, await asking.repeated(described), position.start)
        return
    timeouts = asking.timeouts[:1] if is_open(described.workflow_execution_info) else asking.timeouts
    try:  # the state first: the entries are then at least as far
        status = await asking.query("status", None, StatusView, timeouts)
        turns = await _turns(asking, position, status, timeouts)
        page = await asking.page(position.start, timeouts)
        while page.start + len(page.entries) < page.total and page.entries:
            yield _progress(position, page, [])
            page = await asking.page(position.start, timeouts)
    except NoAnswer as error:
        yield Progress([], await asking.live(described), False, str(error), position.start)
        return
    # What was being said before its entry was read would be shown beside it.
    live = await asking.live(await asking.describe(retry=False) if page.entries else described)
    position.known = _place(described)
    position.turn = turns[-1] if turns else position.turn or BEFORE
    yield replace(_progress(position, page, live, status, turns), why=await asking.repeated(described))


def _progress(
    position: Position,
    page: TranscriptPage,
    live: list[LiveText],
    status: StatusView | None = None,
    turns: Sequence[TurnView] = (),
) -> Progress:
    start = page.start if page.entries else position.start
    position.start = start + len(page.entries)
    return Progress(page.entries, live, True, "", start, status, list(turns))


async def _turns(asking: Asking, position: Position, status: StatusView, timeouts: Sequence[float]) -> list[TurnView]:
    """The turns that have changed; of those before the first look only the latest."""
    known = position.turn
    first = status.turn if known is None else known.turn + (1 if known.ended else 0)
    turns: list[TurnView] = []
    for number in range(max(first, 1), status.turn + 1):
        try:
            turns.append(await asking.query("turn", {"turn": number}, TurnView, timeouts))
        except NoAnswer:
            raise
        except ClientError:  # forgotten: it is one of very many
            continue
    return [turn for turn in turns if turn != known]


def _place(described: DescribeWorkflowExecutionResponse) -> tuple[str, int]:
    info = described.workflow_execution_info
    return info.execution.run_id, info.history_length


def _lost(asking: Asking, error: RPCError) -> str:
    """The same words as long as nothing changes."""
    address = asking.client.service_client.config.target_host
    away = error.status in (*LOST, RPCStatusCode.UNKNOWN)
    return f"the server at {address} {'is away' if away else f'says {error.message!r}'}: trying again"


async def wait_turn(asking: Asking, query: Json, every: float) -> TurnView:
    """A turn once it is over, or as it is when the run has ended. Waits over faults that pass.

    Raises `ClientError` for a turn that isn't known, and `NoAnswer` where the run has ended and nobody answers.
    """
    known: object = None
    while True:
        goes_on = True
        try:
            described = await asking.describe(retry=False)
            goes_on = is_open(described.workflow_execution_info)
            place = (*_place(described), goes_on)
            if place != known:
                found = await asking.query("turn", query, TurnView, asking.timeouts[: 1 if goes_on else None])
                known = place
                if found.ended or not goes_on:
                    return found
        except NoAnswer:
            if not goes_on:
                raise
        except RPCError as error:
            if not passes(error):
                raise
        await asyncio.sleep(every)
