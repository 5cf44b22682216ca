"""The key of a call: bound to one call and to what was shown of it."""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import Approval
from tests.deciding import answers, pending, refused, update
from tests.harness import until, working
from tests.scripts import Script
from tests.shop import shop


async def test_an_old_key_decides_nothing_when_the_provider_uses_an_id_again(client: Client, cache: int) -> None:
    ran: list[Any] = []
    same: list[Any] = [ToolCallPart("refund", {"n": 1}, tool_call_id="same")]
    script = Script(same, same, "done")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (first,) = await pending(handle, 1)
        await update(handle, "approve", {"call": first["call"]})

        async def asked_again() -> bool:
            return [row["call"] for row in await handle.query("pending")] not in ([], [first["call"]])

        await until(asked_again)
        (second,) = await pending(handle, 1)
        assert second["tool_call_id"] != first["tool_call_id"]
        assert second["args"] == first["args"]
        assert "AlreadyDecided" in await refused(handle, "approve", {"call": first["call"]})
        assert "NotPending" in await refused(handle, "approve", {"call": "same"})
        await update(handle, "deny", {"call": second["call"], "reason": "once is enough"})
        await handle.result()
        told = await answers(handle)
        assert told[first["tool_call_id"]] == ("success", "refunded 1")
        assert told[second["tool_call_id"]] == ("denied", "once is enough")
    assert ran == [("refund", 1)]


async def test_a_forged_key_decides_nothing(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script([ToolCallPart("refund", {"n": 1}), ToolCallPart("refund", {"n": 2})], "done")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        one, two = (row["call"] for row in await pending(handle, 2))
        (place, digest), (other_place, other) = one.split("-"), two.split("-")
        forged = [f"{place}-0000", f"{place}-{other}", f"{other_place}-{digest}", place, digest, one.upper(), f"{one} "]
        for key in (*forged, f"{place}-{digest}0", f"{place}-", "*", "1.3-0000", "0.0-0000", "-1.1"):
            text = await refused(handle, "approve", {"call": key})
            assert text.startswith("NotPending")
            assert f"Pending: {sorted([one, two])}" in text
            await handle.signal("approve", {"call": key})
        assert len(await pending(handle, 2)) == 2
        assert not ran
        await update(handle, "approve", {"call": one})
        await update(handle, "deny", {"call": two})
        await handle.result()
    assert ran == [("refund", 1)]


async def test_a_vote_counts_only_for_the_arguments_that_were_shown(client: Client) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    approval = Approval(approvers=["ann", "bob"], quorum=2, allow_edit=True)
    async with working(client, shop(script, ran, approval), check=False) as runs:
        handle = await runs.start("shop", "go")
        (shown_to_bob,) = await pending(handle, 1)
        await update(handle, "approve", {"call": shown_to_bob["call"], "by": "ann", "args": {"n": 1_000_000}})
        assert "its key is now" in await refused(handle, "approve", {"call": shown_to_bob["call"], "by": "bob"})
