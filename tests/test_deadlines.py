"""Deadlines of runs and turns, and the time that doesn't count for them, on a server whose clocks can be moved."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic_ai import Agent
from temporalio.testing import WorkflowEnvironment

from perdure import App, Approval, DurableAgent, Limits, ToolPolicy
from perdure.contracts import Carry, RunPlan, RunRequest
from perdure.workflows.carry import carried, restored
from perdure.workflows.state import RunState
from tests.deciding import answers, pending, update
from tests.harness import failure_of, working
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed, send, turn
from tests.skipping import DAY, YEARS, skip


def gated(*script: Any, hang: bool = False, **options: Any) -> App:
    """An agent with a tool that needs an approval, and may then run for ever."""

    async def pay(n: int) -> str:
        if hang:
            await asyncio.Event().wait()
        return f"paid {n}"

    agent = Agent(Script(*script).model, name="pays", tools=[pay])
    return App(agents=[DurableAgent(agent, policies={"pay": ToolPolicy(approval=Approval())}, **options)])


PAY: dict[str, Any] = {"pay": {"n": 1}}


async def test_a_deadline_passes_while_a_call_waits(clock: WorkflowEnvironment, cache: int) -> None:
    async with working(clock.client, gated(PAY, limits=Limits(deadline=DAY)), cache=cache) as runs:
        handle = await runs.start("pays", "go", timeout=YEARS)
        await pending(handle, 1)
        assert not await clock.fast_forward(handle, 2 * DAY)
        failure = await failure_of(handle)
        assert (failure.type, failure.message) == ("LimitExceeded", "the run's deadline of 1 day, 0:00:00 has passed")
        assert [outcome for outcome, _ in (await answers(handle)).values()] == ["interrupted"]


async def test_waiting_for_people_need_not_count(clock: WorkflowEnvironment, cache: int) -> None:
    app = gated(PAY, PAY, "done", limits=Limits(deadline=DAY, turn_deadline=DAY), deadline_counts_waiting=False)
    async with working(clock.client, app, cache=cache) as runs:
        handle = await runs.start("pays", "go", timeout=YEARS)
        for _ in range(2):
            (row,) = await pending(handle, 1)
            await skip(clock, handle, 30 * DAY)
            await update(handle, "approve", {"call": row["call"]})
        assert (await handle.result())["output"] == "done"


async def test_the_clock_goes_on_when_nobody_is_waited_for(clock: WorkflowEnvironment, cache: int) -> None:
    limits = Limits(deadline=timedelta(seconds=5))
    async with working(
        clock.client, gated(PAY, hang=True, limits=limits, deadline_counts_waiting=False), cache=cache
    ) as runs:
        handle = await runs.start("pays", "go", timeout=YEARS)
        (row,) = await pending(handle, 1)
        await skip(clock, handle, DAY)
        await update(handle, "approve", {"call": row["call"]})
        failure = await failure_of(handle)
        ran = [row for row in await handle.query("audit") if row["event"] == "ran"]
    assert failure.message == "the run's deadline of 0:00:05 has passed"
    assert len(ran) == 1


async def test_a_session_that_idles_waits_for_people(clock: WorkflowEnvironment, cache: int) -> None:
    app = gated("hello", "again", limits=Limits(deadline=DAY), deadline_counts_waiting=False)
    async with working(clock.client, app, cache=cache) as runs:
        handle = await runs.start("pays", timeout=YEARS, **SESSION)
        assert await answered(handle, "hi") == "hello"
        await skip(clock, handle, 30 * DAY)
        assert await answered(handle, "more") == "again"
        await closed(handle)


async def test_each_turn_has_its_own_time(clock: WorkflowEnvironment, cache: int) -> None:
    app = gated(PAY, "later", limits=Limits(turn_deadline=DAY))
    async with working(clock.client, app, cache=cache) as runs:
        handle = await runs.start("pays", timeout=YEARS, **SESSION)
        await send(handle, "pay", id="m1")
        await pending(handle, 1)
        await skip(clock, handle, 2 * DAY)
        failed = await turn(handle, message="m1")
        assert failed["error"] == {
            "type": "LimitExceeded",
            "message": "the turn's deadline of 1 day, 0:00:00 has passed",
        }
        await skip(clock, handle, 2 * DAY)
        assert await answered(handle, "more") == "later"
        await closed(handle)


async def test_a_deadline_that_asks_interrupts_nothing(clock: WorkflowEnvironment, cache: int) -> None:
    """What is begun goes on, also a call that waits; the run asks before its next request."""
    app = gated(PAY, "done", limits=Limits(deadline=DAY), on_limit="ask")
    async with working(clock.client, app, cache=cache) as runs:
        handle = await runs.start("pays", "go", timeout=YEARS)
        (row,) = await pending(handle, 1)
        await skip(clock, handle, 3 * DAY)
        assert [row["kind"] for row in await pending(handle, 1)] == ["approval"]
        await update(handle, "approve", {"call": row["call"]})

        async def at_the_limit() -> dict[str, Any]:
            while True:
                rows = await handle.query("pending")
                if rows and rows[0]["kind"] == "limit":
                    return rows[0]
                await asyncio.sleep(0.02)

        row = await asyncio.wait_for(at_the_limit(), 20)
        assert (row["args"]["limit"], row["args"]["allowed"]) == ("deadline", "P1D")
        assert row["args"]["used"].startswith("P3D")
        answer = await update(handle, "set_limits", {"limits": {"deadline": "P2D"}})
        assert answer["waits"] == ["limit-1"]
        await update(handle, "set_limits", {"limits": {"deadline": "P10D"}})
        assert (await handle.result())["output"] == "done"


def test_the_clock_goes_along_when_a_run_continues_as_new() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    state = RunState(
        request=RunRequest(agent="pays", prompt="go"),
        plan=RunPlan(agent="pays", deadline_pauses=True),
        started=now,
        waited=timedelta(hours=3),
        turn_waited=timedelta(hours=1),
        waiting_since=now + DAY,
        next_model="large",
        limits_asked=2,
        counted_input=7,
    )
    written = Carry.model_validate_json(carried(state).model_dump_json()).model_dump(mode="json")
    assert state.request
    again = restored(state.request, written, [])
    assert (again.waited, again.turn_waited, again.waiting_since) == (
        timedelta(hours=3),
        timedelta(hours=1),
        now + DAY,
    )
    assert (again.next_model, again.limits_asked, again.counted_input) == ("large", 2, 7)
