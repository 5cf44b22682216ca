"""Limits of a turn, deadlines among them, and limits of a session that are reached."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import Client

from perdure import Approval, Limits
from tests.budgets import ASK, counter, limit, most, raised, steps, waits
from tests.deciding import pending, refused, update
from tests.harness import failure_of, until, working
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed, send, turn


async def test_a_turn_has_limits_of_its_own(client: Client, cache: int) -> None:
    ran: list[int] = []
    script = Script("hello", {"count": {"number": 1}}, {"count": {"number": 2}}, "fine")
    options: Any = {"limits": Limits(turn_requests=1, turn_tool_calls=5)}
    async with working(client, counter(ran, script, **options), cache=cache) as runs:
        handle = await runs.start("counts", **SESSION)
        assert await answered(handle, "hi") == "hello"
        sent = await send(handle, "count")
        failed = await turn(handle, message=sent["messages"][0])
        assert (failed["state"], failed["error"]["type"]) == ("failed", "LimitExceeded")
        assert "the turn has made 1 model requests, its limit is 1" in failed["error"]["message"]
        assert "may not be more than the agent allows (1)" in await refused(
            handle, "set_limits", {"limits": {"turn_requests": 2}}
        )
        result = await closed(handle)
        assert (result["turns"], result["failure"]["type"]) == (2, "LimitExceeded")
    assert ran == [1]


async def test_a_session_over_its_limit_fails_every_turn_until_it_is_raised(client: Client, cache: int) -> None:
    script = Script("hello", "again")
    approval = Approval(approvers=["ann"])
    app = counter([], script, limits=Limits(requests=1), limit_approval=approval)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("counts", **SESSION)
        assert await answered(handle, "hi") == "hello"
        for _ in range(2):
            sent = await send(handle, "more")
            failed = await turn(handle, message=sent["messages"][0])
            assert (failed["state"], failed["error"]["type"]) == ("failed", "LimitExceeded")
        await raised(handle, requests=2)
        assert await answered(handle, "more") == "again"
        assert (await closed(handle))["output"] == "again"


@pytest.mark.parametrize("at", ["turn_requests", "turn_tool_calls"])
async def test_an_interrupt_ends_a_turn_that_waits_at_a_limit(client: Client, cache: int, at: str) -> None:
    ran: list[int] = []
    calls = Script("hello") if at == "turn_requests" else Script({"count": {"number": 1}}, "hello")
    app = counter(ran, calls, limits=most(at, 0), **ASK)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("counts", "hi", **SESSION)
        await limit(handle, at)
        await update(handle, "interrupt", {"by": "ann"})
        assert (await turn(handle, turn=1))["state"] == "interrupted"
        assert await pending(handle, 0) == []
        await raised(handle, **{at: 1})
        assert await answered(handle, "again") == "hello"
        await closed(handle)
    assert ran == []


async def test_a_deadline_asks_before_the_next_request(client: Client, cache: int) -> None:
    options: Any = {"limits": Limits(turn_deadline=timedelta(milliseconds=1)), **ASK}
    async with working(client, counter([], steps(1), **options), cache=cache) as runs:
        handle = await runs.start("counts", "go")
        row = await limit(handle, "turn_deadline")
        assert row["args"]["allowed"] == "PT0.001S"
        await raised(handle, turn_deadline="PT1H")
        assert (await handle.result())["output"] == "done"


async def test_a_deadline_is_set_anew_while_a_call_runs(client: Client, cache: int) -> None:
    begun: list[int] = []
    async with working(client, waits(begun), cache=cache) as runs:
        handle = await runs.start("waits", "go", limits={"deadline": "PT1H"})
        await until(lambda: bool(begun))
        await raised(handle, turn_deadline="PT0.1S")
        failure = await failure_of(handle)
    assert (failure.type, failure.message) == ("LimitExceeded", "the turn's deadline of 0:00:00.100000 has passed")
