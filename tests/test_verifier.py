"""Who decides: people that a verifier names, groups, and whoever asked."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import jwt
import pytest
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import Approval, DeclarationError, Principal, TokenUse
from perdure.tokens import SignedTokens
from perdure.workflows.waits import Who
from tests.deciding import cancelled, pending, refused, rejected, update
from tests.harness import until, working
from tests.reading import everything
from tests.scripts import Script
from tests.shop import shop
from tests.tokens import FINANCE, PUBLIC, token


async def test_only_a_verified_person_with_the_right_decides(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script([ToolCallPart("refund", {"n": 1}), ToolCallPart("refund", {"n": 2})], "done")
    app = shop(script, ran, FINANCE, verifier=SignedTokens(PUBLIC))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("shop", "go")
        one, two = await pending(handle, 2)
        assert "without a 'token'" in await refused(handle, "approve", {"call": one["call"], "by": "ann"})
        eve = {"call": one["call"], "token": token("eve", handle, one)}
        assert "'eve' may not decide" in await refused(handle, "approve", eve)
        as_bob = {"call": one["call"], "token": token("ann", handle, one), "by": "bob"}
        assert "can't decide as 'bob'" in await refused(handle, "approve", as_bob)
        assert not ran
        one_token = token("ann", handle, one)
        await update(handle, "approve", {"call": one["call"], "token": one_token})
        await handle.signal("deny", {"call": two["call"], "token": token("bob", handle, two, "deny"), "reason": "no"})
        result = await handle.result()
    assert ran == [("refund", 1)]
    decided = [row for row in result["audit"] if row["event"] in ("approved", "denied")]
    assert [(row["by"], row["verified"], row.get("groups")) for row in decided] == [
        ("ann", True, ["finance"]),
        ("bob", True, None),
    ]
    refusals = [row for row in result["audit"] if row["event"] == "refused"]
    assert [row["reason"].split(":")[0] for row in refusals] == ["NotAllowed", "NotAllowed"]
    assert one_token not in json.dumps(result)


async def test_who_comes_during_a_verification_waits_for_its_end(client: Client, cache: int) -> None:
    ran: list[Any] = []
    released = asyncio.Event()
    asked: list[str] = []

    async def slow(token: str, use: TokenUse) -> Principal:
        asked.append(token)
        if len(asked) == 1:
            await released.wait()
        return Principal(name=jwt.decode(token, options={"verify_signature": False})["sub"])

    app = shop(Script({"refund": {"n": 1}}, "done"), ran, verifier=slow)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        denial = {"call": row["call"], "token": token("ann", handle, row, "deny")}
        first = asyncio.create_task(update(handle, "deny", denial))
        await until(lambda: len(asked) == 1)
        second = {"call": row["call"], "token": token("bob", handle, row)}
        later = asyncio.create_task(refused(handle, "approve", second))
        await handle.signal("approve", second)
        released.set()
        assert (await first)["outcome"] == "denied"
        assert "already decided: denied" in await later
        await handle.result()
        assert (await handle.query("status"))["rejected_count"] == 1
    assert not ran
    assert len(asked) == 1, "who came later was not even asked who they are"


async def test_a_verifier_that_fails_changes_nothing(client: Client) -> None:
    ran: list[Any] = []

    async def broken(token: str, use: TokenUse) -> Principal:
        raise ConnectionError("password hunter2 was refused")

    app = shop(Script({"refund": {"n": 1}}, "done"), ran, verifier=broken)
    async with working(client, app) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        text = await refused(handle, "approve", {"call": row["call"], "token": token("ann", handle, row)})
        assert text.startswith("NotChecked: verify failed, so nothing was changed; send it again")
        assert "hunter2" not in await everything(handle)
        assert len(await handle.query("pending")) == 1
        await cancelled(handle)
    assert not ran


async def test_who_asked_or_edited_may_not_approve(client: Client, cache: int) -> None:
    ran: list[Any] = []
    approval = Approval(forbid_self=True, allow_edit=True)
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), ran, approval), cache=cache) as runs:
        handle = await runs.start("shop", "go", by="ann")
        (row,) = await pending(handle, 1)
        assert "'ann' started the run" in await refused(handle, "approve", {"call": row["call"], "by": "ann"})
        assert "say who you are" in await refused(handle, "approve", {"call": row["call"]})
        answer = await update(handle, "approve", {"call": row["call"], "by": "bob", "args": {"n": 5}})
        assert (answer["outcome"], answer["needed"]) == ("edited", 1)
        assert "its key is now" in await refused(handle, "approve", {"call": row["call"], "by": "eve"})
        again = {"call": answer["call"], "by": "bob"}
        assert "'bob' edited the arguments" in await refused(handle, "approve", again)
        (shown,) = await handle.query("pending")
        assert (shown["call"], shown["args"]["n"]) == (answer["call"], 5)
        await update(handle, "approve", {"call": answer["call"], "by": "eve"})
        await handle.result()
    assert ran == [("refund", 5)]


async def test_an_edit_voids_the_votes_for_what_was_shown_before(client: Client) -> None:
    ran: list[Any] = []
    approval = Approval(quorum=2, allow_edit=True)
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), ran, approval)) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        await update(handle, "approve", {"call": row["call"], "by": "ann"})
        answer = await update(handle, "approve", {"call": row["call"], "by": "bob", "args": {"n": 100}})
        assert (answer["outcome"], answer["needed"]) == ("voted", 1)
        await handle.signal("approve", {"call": row["call"], "by": "eve"})
        await until(lambda: rejected(handle, 1))
        assert not ran
        await update(handle, "approve", {"call": answer["call"], "by": "ann"})
        await handle.result()
    assert ran == [("refund", 100)]


def test_groups_and_verifiers_are_checked_when_the_app_is_built() -> None:
    with pytest.raises(DeclarationError, match="nobody can show to be in a group"):
        shop(Script("x"), [], FINANCE)
    later = Approval(expires_after=timedelta(hours=1), on_expiry="escalate", escalate_to=FINANCE)
    with pytest.raises(DeclarationError, match="nobody can show to be in a group"):
        shop(Script("x"), [], later)
    with pytest.raises(DeclarationError, match="isn't an async function"):
        shop(Script("x"), [], verifier=print)


async def test_nobody_is_a_group_by_claiming_so(client: Client) -> None:
    """Also where the run began on a worker that had no verifier yet."""
    ran: list[Any] = []
    script = Script({"look": {"n": 1}}, {"refund": {"n": 1}}, "done")
    with pytest.raises(ValueError, match="can't begin with 'group:'"):
        Principal(name="group:finance")
    async with working(client, shop(script, ran, FINANCE, verifier=SignedTokens(PUBLIC))) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        assert Who("group:finance").is_among(["group:finance"]) is False
        assert Who("ann", ("finance",), verified=True).is_among(["group:finance"])
        await update(handle, "approve", {"call": row["call"], "token": token("ann", handle, row)})
        await handle.result()
    assert ran == [("look", 1), ("refund", 1)]
