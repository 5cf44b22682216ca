"""People who decide at once: one is first, and the others are told so.

In each run a second call waits until the end, so that the run is open for whoever comes late.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from perdure import Approval
from perdure.client import PerdureClient, RunClosed
from tests.deciding import pending, update
from tests.harness import Handle, until, working
from tests.scripts import Script
from tests.shop import shop

Ran = list[Any]


@asynccontextmanager
async def two_wait(client: Client, ran: Ran, cache: int, **approval: Any) -> AsyncGenerator[tuple[Handle, str]]:
    """A run and the key of its first call. The second is denied at the end of the block; then the run has ended."""
    script = Script([ToolCallPart("refund", {"n": 1}), ToolCallPart("delete", {"n": 2})], "done")
    async with working(client, shop(script, ran, Approval(**approval)), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        first, second = (row["call"] for row in await pending(handle, 2))
        yield handle, first
        await update(handle, "deny", {"call": second})
        assert (await handle.result())["output"] == "done"


def type_of(answer: Any) -> str:
    """The outcome of an update, or the type of its refusal."""
    if isinstance(answer, dict):
        return str(answer["outcome"])  # pyright: ignore[reportUnknownArgumentType]
    assert isinstance(answer, WorkflowUpdateFailedError), answer
    assert isinstance(answer.cause, ApplicationError)
    return answer.cause.type or ""


async def all_at_once(handle: Handle, *sent: tuple[str, dict[str, Any]]) -> list[str]:
    """Send updates at once, and return what each came to."""
    tasks = [update(handle, verb, body) for verb, body in sent]
    return [type_of(answer) for answer in await asyncio.gather(*tasks, return_exceptions=True)]


async def decided(handle: Handle, key: str) -> list[str]:
    """What the audit says of a call, up to its decision."""
    rows = await handle.query("audit")
    return [row["event"] for row in rows if row["call"] == key and row["event"] not in ("ran", "refused")]


async def test_of_two_who_approve_at_once_one_is_first(client: Client, cache: int) -> None:
    ran: Ran = []
    async with two_wait(client, ran, cache) as (handle, key):
        both = [("approve", {"call": key, "by": "ann"}), ("approve", {"call": key, "by": "bob"})]
        assert sorted(await all_at_once(handle, *both)) == ["AlreadyDecided", "approved"]
        assert await decided(handle, key) == ["asked", "approved"]
    assert ran == [("refund", 1)]


async def test_of_one_who_approves_and_one_who_denies_one_is_first(client: Client, cache: int) -> None:
    ran: Ran = []
    async with two_wait(client, ran, cache) as (handle, key):
        both = [("deny", {"call": key, "by": "ann"}), ("approve", {"call": key, "by": "bob"})]
        first, second = await all_at_once(handle, *both)
        assert (first, second) in [("denied", "AlreadyDecided"), ("AlreadyDecided", "approved")]
        assert await decided(handle, key) == ["asked", "denied" if first == "denied" else "approved"]
    assert ran == ([] if first == "denied" else [("refund", 1)])


async def test_a_double_click_approves_once_and_a_denial_in_it_is_too_late(client: Client, cache: int) -> None:
    ran: Ran = []
    async with two_wait(client, ran, cache) as (handle, key):
        for verb in ("approve", "approve", "deny"):
            await handle.signal(verb, {"call": key, "by": "ann"})
        rejected = (await handle.query("status"))["rejected"]
        assert [one["signal"] for one in rejected] == ["approve", "deny"]
        assert all("already decided: approved" in one["reason"] for one in rejected)
        assert await decided(handle, key) == ["asked", "approved"]
    assert ran == [("refund", 1)]


async def test_whoever_comes_while_edited_arguments_are_looked_at_waits(client: Client, cache: int) -> None:
    """Arguments are checked by an activity; who arrived first is first all the same."""
    ran: Ran = []
    async with two_wait(client, ran, cache, allow_edit=True) as (handle, key):
        edit = ("approve", {"call": key, "by": "ann", "args": {"n": 5}})
        edited, denied = await all_at_once(handle, edit, ("deny", {"call": key, "by": "bob"}))
        assert (edited, denied) in [("AlreadyDecided", "denied"), ("approved", "AlreadyDecided")]
        assert await decided(handle, key) == ["asked", "denied" if denied == "denied" else "edited"]
    assert ran == ([] if denied == "denied" else [("refund", 5)])


async def test_of_two_who_edit_at_once_the_arguments_of_one_run(client: Client, cache: int) -> None:
    ran: Ran = []
    async with two_wait(client, ran, cache, allow_edit=True) as (handle, key):
        edits = [("approve", {"call": key, "by": by, "args": {"n": n}}) for by, n in (("ann", 5), ("bob", 6))]
        outcomes = await all_at_once(handle, *edits)
        assert sorted(outcomes) == ["AlreadyDecided", "approved"]
        assert await decided(handle, key) == ["asked", "edited"]
    assert ran == [("refund", 5 if outcomes[0] == "approved" else 6)]


async def test_a_decision_that_meets_the_end_of_its_run_is_told_so(client: Client) -> None:
    script = Script({"refund": {"n": 1}}, "done")
    async with working(client, shop(script, []), check=False) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
    late = asyncio.create_task(PerdureClient(client).run(handle.id).approve(row["call"]))

    async def offered() -> bool:
        return (await handle.describe()).raw_description.HasField("pending_workflow_task")

    await until(offered)
    await handle.terminate()
    with pytest.raises(RunClosed):
        await late
