"""Waiting for months, on a real server whose clock for each run can be moved.

How skipping works (temporalio 1.35, server 1.32; every run has a clock of its own):

- A run that is started by the environment's own client skips by itself, whether or not anybody awaits it: as soon as no
  workflow task and no activity is open, its clock jumps to the next timer, and where there is no timer to the execution
  timeout. So these tests start their runs with `with_time_skipping_disabled()`, which leaves the clock alone.
- `fast_forward(run, duration)` then moves one run by exactly that much, through the timers on the way, and returns when
  it is there: true, or false where the run ended on the way. It doesn't move while a workflow task or an activity is
  open: with no worker it stops at the first timer that fires, until one comes. `sleep()` of the environment is refused.
- Timers, `workflow.now()`, event times and the execution timeout go by the run's clock, so a run gets one of years.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.testing import WorkflowEnvironment

from perdure import Approval, ToolPolicy
from tests.deciding import answers, pending, refused, update
from tests.harness import Handle, Runs, activities, failure_of, until, working
from tests.outside import outside
from tests.reading import events, open_activities
from tests.scripts import Script
from tests.shop import shop
from tests.skipping import DAY, MONTH, YEARS, skip

SLACK = timedelta(hours=1)
"""What the machine itself may take beside days that are skipped."""


async def asked(runs: Runs, agent: str = "shop") -> tuple[Handle, str]:
    """A run of which one call waits, and the key of the call."""
    handle = await runs.start(agent, "go", timeout=YEARS)
    (row,) = await pending(handle, 1)
    return handle, row["call"]


async def skip_to_the_end(clock: WorkflowEnvironment, handle: Handle, at_most: timedelta) -> Any:
    """Move the clock of one run that ends meanwhile, and return its result."""
    assert not await clock.fast_forward(handle, at_most)
    return await handle.result()


def after_asking(audit: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """What happened, and how many whole days after the asking; less than an hour more than that."""
    begun = datetime.fromisoformat(audit[0]["at"])
    since = [(row["event"], datetime.fromisoformat(row["at"]) - begun) for row in audit]
    assert all(passed % DAY < SLACK for _, passed in since), since
    return [(event, passed.days) for event, passed in since]


def monthly() -> Approval:
    """Ann has a month, then the boss has one."""
    boss = Approval(approvers=["boss"], expires_after=MONTH)
    return Approval(approvers=["ann"], expires_after=MONTH, on_expiry="escalate", escalate_to=boss)


async def test_nobody_answers_for_a_month_nor_do_the_next_approvers(clock: WorkflowEnvironment, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    async with working(clock.client, shop(script, ran, monthly()), cache=cache) as runs:
        handle, key = await asked(runs)
        await skip(clock, handle, 29 * DAY)
        (row,) = await pending(handle, 1)
        assert row["approvers"] == ["ann"]
        await skip(clock, handle, 2 * DAY)
        (row,) = await pending(handle, 1)
        assert (row["call"], row["approvers"]) == (key, ["boss"])
        assert "'ann' may not decide" in await refused(handle, "approve", {"call": key, "by": "ann"})
        result = await skip_to_the_end(clock, handle, MONTH)
        assert "nobody answered" in (await answers(handle))["c0.0"][1]
        assert await activities(handle) == ["model_request", "model_request"]
    assert result["output"] == "done"
    assert not ran
    assert after_asking(result["audit"]) == [("asked", 0), ("escalated", 30), ("expired", 60)]


async def test_a_decision_on_the_last_day_counts(clock: WorkflowEnvironment, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    async with working(clock.client, shop(script, ran, monthly()), cache=cache) as runs:
        handle, key = await asked(runs)
        await skip(clock, handle, 29 * DAY)
        await update(handle, "approve", {"call": key, "by": "ann"})
        result = await handle.result()
    assert ran == [("refund", 1)]
    assert len(script.requests) == 2
    assert after_asking(result["audit"]) == [("asked", 0), ("approved", 29), ("ran", 29)]


async def test_the_next_approvers_decide_in_their_own_month(clock: WorkflowEnvironment, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    async with working(clock.client, shop(script, ran, monthly()), cache=cache) as runs:
        handle, key = await asked(runs)
        await skip(clock, handle, 59 * DAY)
        await update(handle, "approve", {"call": key, "by": "boss"})
        result = await handle.result()
    assert ran == [("refund", 1)]
    assert after_asking(result["audit"]) == [("asked", 0), ("escalated", 30), ("approved", 59), ("ran", 59)]


async def test_a_call_without_expiry_waits_for_a_year_and_holds_nothing(clock: WorkflowEnvironment, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    async with working(clock.client, shop(script, ran), cache=cache) as runs:
        handle, key = await asked(runs)
        before = len((await handle.fetch_history()).events)
        await skip(clock, handle, 365 * DAY)
        kinds = await events(handle)
        assert kinds[before:] == [
            EventType.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED,
            EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIME_SKIPPING_TRANSITIONED,
        ]
        assert EventType.EVENT_TYPE_TIMER_STARTED not in kinds
        assert not await open_activities(handle)
        await update(handle, "approve", {"call": key})
        result = await handle.result()
    assert ran == [("refund", 1)]
    assert after_asking(result["audit"]) == [("asked", 0), ("approved", 365), ("ran", 365)]


async def test_a_result_from_outside_is_waited_for_as_long_as_the_policy_says(
    clock: WorkflowEnvironment, cache: int
) -> None:
    script = Script({"outside": {}}, "done")
    async with working(
        clock.client, outside(script, policies={"outside": ToolPolicy(wait=MONTH)}), cache=cache
    ) as runs:
        late, _ = await asked(runs, "out")
        intime, key = await asked(runs, "out")
        await skip(clock, intime, 29 * DAY)
        await update(intime, "complete", {"call": key, "result": 7})
        assert after_asking((await intime.result())["audit"]) == [("asked", 0), ("completed", 29)]
        assert await answers(intime) == {"c0.0": ("success", "7")}
        assert after_asking((await skip_to_the_end(clock, late, 31 * DAY))["audit"]) == [("asked", 0), ("expired", 30)]
        assert "No result came in time" in (await answers(late))["c0.0"][1]


async def test_the_time_counts_from_the_asking_and_not_from_the_restart(clock: WorkflowEnvironment, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    app = shop(script, ran, monthly())
    async with working(clock.client, app, cache=cache, check=False) as runs:
        handle, key = await asked(runs)
        (before,) = await pending(handle, 1)
        await skip(clock, handle, 20 * DAY)
    async with working(clock.client, app, cache=cache, task_queue=runs.task_queue, check=False) as again:
        assert await pending(handle, 1) == [before]
        await skip(clock, handle, 9 * DAY)
        assert await pending(handle, 1) == [before]
        await skip(clock, handle, 2 * DAY)
        (escalated,) = await pending(handle, 1)
        assert (escalated["asked_at"], escalated["approvers"]) == (before["asked_at"], ["boss"])
    async with working(clock.client, app, cache=cache, task_queue=again.task_queue) as last:
        last.handles.append(handle)
        assert await pending(handle, 1) == [escalated]
        result = await skip_to_the_end(clock, handle, MONTH)
    assert not ran
    assert len(script.requests) == 2
    assert after_asking(result["audit"]) == [("asked", 0), ("escalated", 30), ("expired", 60)]
    assert {row["call"] for row in result["audit"]} == {key}


async def test_an_expiry_without_a_worker_is_found_by_the_next_one(clock: WorkflowEnvironment) -> None:
    """Workers without a cache: of one with a cache the server would first wait for the old one, three seconds."""
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "never")
    app = shop(script, ran, Approval(expires_after=MONTH, on_expiry="fail"))
    async with working(clock.client, app, cache=0, check=False) as runs:
        handle, key = await asked(runs)
    skipping = asyncio.create_task(clock.fast_forward(handle, 31 * DAY))
    await until(lambda: timer_fired(handle))
    async with working(clock.client, app, cache=0, task_queue=runs.task_queue) as again:
        again.handles.append(handle)
        failure = await failure_of(handle)
        assert after_asking(await handle.query("audit")) == [("asked", 0), ("expired", 30)]
    assert not await skipping
    assert failure.type == "ApprovalExpired"
    assert key in failure.message
    assert not ran
    assert len(script.requests) == 1


async def test_a_decision_after_the_expiry_is_too_late_although_no_worker_saw_it(clock: WorkflowEnvironment) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    app = shop(script, ran, Approval(expires_after=MONTH))
    async with working(clock.client, app, cache=0, check=False) as runs:
        handle, key = await asked(runs)
    skipping = asyncio.create_task(clock.fast_forward(handle, 31 * DAY))
    await until(lambda: timer_fired(handle))
    await handle.signal("approve", {"call": key, "by": "ann"})
    async with working(clock.client, app, cache=0, task_queue=runs.task_queue) as again:
        again.handles.append(handle)
        result = await handle.result()
        await skipping
        assert [row["event"] for row in result["audit"]] == ["asked", "expired", "refused"]
        assert (await handle.query("status"))["rejected_count"] == 1
    assert not ran


async def timer_fired(handle: Handle) -> bool:
    """Whether a timer of the run has fired."""
    return EventType.EVENT_TYPE_TIMER_FIRED in await events(handle)
