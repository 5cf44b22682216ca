"""Limits that are reached: the run asks people, and goes on where it stood; or it fails, typed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client

from perdure import Approval, Limits
from perdure.client import PerdureClient
from tests.budgets import ASK, counter, limit, most, raised, steps
from tests.deciding import cancelled, refused, update
from tests.harness import activities, failure_of, until, working
from tests.scripts import Script
from tests.sessions import SESSION, closed, runs_of


async def test_a_run_asks_before_a_request_and_goes_on_where_it_stood(client: Client, cache: int) -> None:
    ran: list[int] = []
    script = steps(3)
    async with working(client, counter(ran, script, limits=Limits(requests=2), **ASK), cache=cache) as runs:
        handle = await runs.start("counts", "go")
        row = await limit(handle, "requests")
        assert row["args"] == {"limit": "requests", "used": 2, "allowed": 2, "needed": 3}
        assert (row["call"], row["tool"], row["approvers"]) == ("limit-1", "", [])
        assert (await handle.query("status"))["state"] == "waiting"
        assert ran == [0, 10]
        answer = await raised(handle, requests=3)
        assert (answer["limits"]["requests"], answer["waits"]) == (3, [])
        row = await limit(handle, "requests")
        assert (row["call"], row["args"]["allowed"]) == ("limit-2", 3)
        await handle.signal("set_limits", {"limits": {"requests": None}})
        assert (await handle.result())["output"] == "done"
        assert await activities(handle) == ["model_request", "tool:count"] * 3 + ["model_request"]
        events = [(row["event"], row.get("by")) for row in await handle.query("audit")]
    assert (ran, len(script.requests)) == ([0, 10, 20], 4)
    assert events == [("asked", None), ("set_limits", "ann"), ("asked", None), ("set_limits", None)]


async def test_too_little_keeps_it_waiting_and_the_row_says_so(client: Client, cache: int) -> None:
    ran: list[int] = []
    options: Any = {"limits": Limits(tool_calls=1, requests=1), **ASK}
    async with working(client, counter(ran, steps(1, calls=3), **options), cache=cache) as runs:
        handle = await runs.start("counts", "go")
        row = await limit(handle, "tool_calls")
        assert row["args"] == {"limit": "tool_calls", "used": 0, "allowed": 1, "needed": 3}
        assert (await raised(handle, tool_calls=2))["waits"] == ["limit-1"]
        assert (await limit(handle, "tool_calls"))["args"]["allowed"] == 2
        assert ran == []
        assert (await raised(handle, tool_calls=3))["waits"] == []
        await limit(handle, "requests")
        assert sorted(ran) == [0, 1, 2]
        await raised(handle, requests=5)
        await handle.result()
    assert sorted(ran) == [0, 1, 2]


@pytest.mark.parametrize("at", ["requests", "tool_calls"])
async def test_who_denies_it_ends_the_run_typed(client: Client, cache: int, at: str) -> None:
    ran: list[int] = []
    options: Any = {"limits": most(at, 0), "limit_approval": Approval(approvers=["ann"]), **ASK}
    async with working(client, counter(ran, steps(1), **options), cache=cache) as runs:
        handle = await runs.start("counts", "go")
        await limit(handle, at)
        assert "use set_limits or deny" in await refused(handle, "approve", {"call": "limit-1", "by": "ann"})
        assert "use set_limits or deny" in await refused(handle, "complete", {"call": "limit-1", "result": 1})
        assert "NotAllowed" in await refused(handle, "deny", {"call": "limit-1", "by": "eve"})
        assert "NotAllowed" in await refused(handle, "set_limits", {"limits": {at: 5}, "by": "eve"})
        await update(handle, "deny", {"call": "limit-1", "by": "ann", "reason": "too dear"})
        failure = await failure_of(handle)
    assert (failure.type, ran) == ("LimitExceeded", [])
    assert failure.message.endswith("limit is 0; raising it was denied by 'ann': too dear")


async def test_nobody_raises_it_in_time(client: Client, cache: int) -> None:
    approval = Approval(expires_after=timedelta(milliseconds=300))
    app = counter([], steps(1), limits=Limits(requests=0), limit_approval=approval, **ASK)
    async with working(client, app, cache=cache) as runs:
        failure = await runs.failure("counts", "go")
    assert failure.type == "LimitExceeded"
    assert failure.message.endswith("limit is 0; nobody raised it in time")


async def test_a_run_that_waits_at_a_limit_is_canceled(client: Client, cache: int) -> None:
    async with working(client, counter([], steps(1), limits=Limits(tool_calls=0), **ASK), cache=cache) as runs:
        handle = await runs.start("counts", "go")
        await limit(handle, "tool_calls")
        await cancelled(handle)


async def test_a_worker_restarts_while_a_run_waits_at_a_limit(client: Client) -> None:
    ran: list[int] = []
    app = counter(ran, steps(2), limits=Limits(requests=1), **ASK)
    async with working(client, app, check=False) as runs:
        handle = await runs.start("counts", "go")
        await limit(handle, "requests")
    async with working(client, app, task_queue=runs.task_queue) as runs:
        runs.handles.append(handle)
        assert (await limit(handle, "requests"))["call"] == "limit-1"
        await raised(handle, requests=9)
        assert (await handle.result())["output"] == "done"
    assert ran == [0, 10]


@pytest.mark.parametrize("at", ["requests", "tool_calls"])
async def test_the_wait_is_carried_when_the_run_continues_as_new(rolling_client: Client, cache: int, at: str) -> None:
    ran: list[int] = []
    script = steps(6)
    async with working(rolling_client, counter(ran, script, limits=most(at, 3), **ASK), cache=cache) as runs:
        handle = await runs.start("counts", "go")
        await limit(handle, at)
        before = await runs_of(handle)
        for n in range(12):
            await handle.signal("approve", {"call": "nothing", "by": str(n)})

        async def rolled() -> bool:
            return await runs_of(handle) > before

        if at == "tool_calls":  # it stands in a step, whose request was made in this run of the chain
            await until(rolled)
        assert (await limit(handle, at))["call"] == "limit-1"
        await raised(handle, **{at: 100})
        assert (await handle.result())["output"] == "done"
        asked = [row for row in await handle.query("audit") if row["event"] == "asked"]
    assert (ran, len(script.requests), len(asked)) == ([0, 10, 20, 30, 40, 50], 7, 1)


async def test_the_web_ui_shows_what_raises_it(client: Client) -> None:
    async with working(client, counter([], steps(1), limits=Limits(requests=0), **ASK)) as runs:
        handle = await runs.start("counts", "go")
        await limit(handle, "requests")
        shown = (await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)).current_details
        blocks = "\n".join(line[4:] for line in shown.split("\n") if line.startswith("    "))
        assert '{\n  "limits": {\n    "requests": 1\n  },\n  "by": "your name"\n}' in blocks
        assert '{\n  "call": "limit-1",\n  "by": "your name"\n}' in blocks
        await raised(handle, requests=9)
        await handle.result()


async def test_set_limits_says_what_is_wrong_with_it(client: Client) -> None:
    app = counter([], Script("hello"), limits=Limits(requests=5))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "request.limits: Field required"),
        ({"limits": {}}, "limits is empty"),
        ({"limits": {"request": 3}}, "request.limits.request: Extra inputs"),
        ({"limits": {"requests": -1}}, "greater than or equal to 0"),
        ({"limits": {"requests": 6}}, "NotAllowed: limits.requests may not be more than the agent allows (5)"),
        ({"limits": {"requests": None}}, "NotAllowed"),
        ({"limits": {"requests": 3}, "token": "x"}, "has no verifier"),
    ]
    async with working(client, app) as runs:
        handle = await runs.start("counts", **SESSION)
        for sent, why in wrong:
            assert why in await refused(handle, "set_limits", sent)
        await handle.signal("set_limits", {"limits": {"requests": 6}})
        status = await handle.query("status")
        assert (status["limits"]["requests"], status["rejected"][0]["signal"]) == (5, "set_limits")
        answer = await PerdureClient(client).run(handle.id).set_limits(Limits(requests=4), by="ann")
        assert answer.limits.requests == 4
        await closed(handle)
