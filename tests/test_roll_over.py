"""Continue-as-new: nobody notices."""

from __future__ import annotations

from typing import Any

from temporalio.client import Client

from tests.harness import working
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed, runs_of
from tests.test_approvals import pending, shop, update


async def test_a_session_rolls_over_between_turns_and_steps(rolling_client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script("hello", {"look": {"n": 1}}, {"look": {"n": 2}}, {"look": {"n": 3}}, "seen", "bye")
    async with working(rolling_client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "hi", **SESSION)
        assert await answered(handle, "look") == "seen"
        assert await answered(handle, "bye", id="m3") == "bye"
        result = await closed(handle)
        assert (result["output"], result["turns"], result["steps"]) == ("bye", 3, 6)
        assert ran == [("look", 1), ("look", 2), ("look", 3)]
        assert await runs_of(handle) > 2


async def test_a_run_rolls_over_while_a_call_waits(rolling_client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script(*({"look": {"n": n}} for n in range(3)), {"look": {"n": 9}, "refund": {"n": 2}}, "done")
    async with working(rolling_client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        for n in range(8):
            await handle.signal("approve", {"call": "nothing", "by": str(n)})
        await update(handle, "approve", {"call": row["call"], "by": "ann"})
        result = await handle.result()
        assert (result["output"], result["steps"]) == ("done", 5)
        assert [entry for entry in ran if entry[0] == "refund"] == [("refund", 2)]
        assert await runs_of(handle) > 1
