"""Calls that nobody decides: they expire, are escalated, or the run is cancelled."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import Client

from perdure import Approval
from tests.deciding import answers, pending
from tests.harness import until, working
from tests.scripts import Script
from tests.shop import shop


async def test_expiry_is_told_apart_from_a_denial(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    approval = Approval(expires_after=timedelta(seconds=1))
    async with working(client, shop(script, ran, approval), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        result = await handle.result()
        (_, text) = (await answers(handle))["c0.0"]
        assert "nobody answered" in text
    assert not ran
    assert [row["event"] for row in result["audit"]] == ["asked", "expired"]


async def test_expiry_escalates_and_then_fails_the_run(client: Client) -> None:
    script = Script({"refund": {"n": 1}}, "done")
    last = Approval(approvers=["boss"], expires_after=timedelta(seconds=1), on_expiry="fail")
    approval = Approval(approvers=["ann"], expires_after=timedelta(seconds=0.5), on_expiry="escalate", escalate_to=last)
    async with working(client, shop(script, [], approval)) as runs:
        handle = await runs.start("shop", "go")

        async def escalated() -> bool:
            return [row["approvers"] for row in await handle.query("pending")] == [["boss"]]

        await until(escalated)
        failure = await runs.failure("shop", "again")
        assert failure.type == "ApprovalExpired"


async def test_cancel_while_something_waits_answers_the_call(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "never")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        await handle.cancel()
        with pytest.raises(Exception, match="Workflow execution failed"):
            await handle.result()
        assert (await handle.query("status"))["state"] == "done"
        assert row["call"]
    assert not ran
