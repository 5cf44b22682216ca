"""Continue-as-new at every moment of rest, one after the other.

Each server suggests it after another number of events, so that the first roll-over of the same conversation comes at
another moment: while a call waits with none or half of its votes, with messages that nobody has read, between steps
with a retry counted, in a later turn, while the session is idle.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client, WorkflowHistory

from perdure.contracts import Carry
from tests.conftest import server
from tests.deciding import pending, update
from tests.harness import Handle, chain, check_tasks, replay, working
from tests.rolling import Office, compared
from tests.sessions import SESSION, closed, send, turn

MANY = range(4, 90, int(os.environ.get("PERDURE_ROLL_STEP", "8")))
"""Events after which a server suggests it. With a step of 1 that is every moment there is (`make soak`)."""
pytestmark = pytest.mark.timeout(240 + 30 * len(MANY))
TURNS = [
    {"moody": {"n": 0}},
    [ToolCallPart("look", {"n": 1}), ToolCallPart("refund", {"n": 2})],
    {"moody": {"n": 1}},
    {"moody": {"n": 2}},
    "refunded",
    "one",
    {"look": {"n": 3}},
    "two",
]


async def conversation_of(handle: Handle) -> None:
    """A gated call with a running timer, half a quorum, two unread messages, counted retries, two turns, an end."""
    (row,) = await pending(handle, 1)
    await update(handle, "approve", {"call": row["call"], "by": "ann"})
    (voted,) = await pending(handle, 1)
    await send(handle, "first", id="first")
    await send(handle, "second", id="second")
    (again,) = await pending(handle, 1)
    assert again == voted
    assert again["votes"] == ["ann"]
    await update(handle, "approve", {"call": row["call"], "by": "bob"})
    assert (await turn(handle, message="second"))["turn"] == 3
    await closed(handle)


async def come_to(client: Client, cache: int) -> tuple[dict[str, Any], list[Carry], list[WorkflowHistory]]:
    """What the conversation comes to, what was taken along at each of its roll-overs, and its histories."""
    office = Office(*TURNS)
    async with working(client, office.app(), cache=cache, check=False) as runs:
        handle = await runs.start("office", "go", **SESSION)
        await conversation_of(handle)
        found = await compared(handle, office)
        histories = await chain(handle)
    starts = [history.events[0].workflow_execution_started_event_attributes for history in histories]
    payloads = [start.input.payloads for start in starts if start.continued_execution_run_id]
    return found, [Carry.model_validate_json(own[1].data) for own in payloads], histories


def moment_of(carry: Carry) -> str:
    """Where a run was when it rolled over."""
    if carry.current is not None:
        (wait,) = carry.current.waits
        return f"waits with {len(wait.votes)} votes and {len(carry.queue)} messages"
    if not carry.in_turn:
        return f"idle after turn {carry.turn}" if not carry.queue else f"before turn {carry.turn + 1}"
    return f"after step {carry.step}, {carry.retries.tools.get('moody', 0)} retries"


async def test_wherever_it_rolls_over_it_comes_to_the_same(client: Client, cache: int) -> None:
    expected, none, histories = await come_to(client, cache)
    assert not none
    moments: set[str] = set()
    for events in MANY:
        async with server(f"limit.historyCount.suggestContinueAsNew={events}") as started:
            found, carried, more = await come_to(started.client, cache)
        histories += more
        assert found == expected, f"after {events} events, at {[moment_of(carry) for carry in carried]}"
        moments |= {moment_of(carry) for carry in carried}
    assert {
        "after step 1, 1 retries",
        "waits with 0 votes and 0 messages",
        "waits with 1 votes and 2 messages",
        "after step 2, 1 retries",
        "after step 3, 2 retries",
        "after step 4, 0 retries",
        "after step 7, 0 retries",
    } <= moments, sorted(moments)
    for history in histories:
        check_tasks(history)
        await replay(history, sandboxed=False)


@pytest.mark.parametrize("events", [1, 2, 3])
async def test_a_server_that_always_suggests_it(client: Client, events: int) -> None:
    """Then a run rolls over at every moment of rest at which anything was done since the last."""
    expected, _, histories = await come_to(client, 1000)
    async with server(f"limit.historyCount.suggestContinueAsNew={events}") as started:
        found, carried, more = await come_to(started.client, 1000)
    assert found == expected
    assert len(carried) >= 8
    for history in [*histories, *more]:
        check_tasks(history)
        await replay(history)
