"""What people do to a run of `tests.rolling.Office` while it may roll over: turns of its model, and decisions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_ai.messages import ToolCallPart

from tests.deciding import pending, update
from tests.harness import Handle, until
from tests.rolling import pushed
from tests.sessions import closed, send, turn

Scenario = Callable[[Handle, bool], Awaitable[None]]


async def half_a_quorum(handle: Handle, rolls: bool) -> None:
    """A call with half its votes, a running timer, an earlier sibling that ran, and three unread messages."""
    (row,) = await pending(handle, 1)
    await update(handle, "approve", {"call": row["call"], "by": "ann"})
    await send(handle, "first", id="first")
    await send(handle, "second", id="second")
    await send(handle, "joins", id="joins", when_busy="steer")
    (before,) = await pending(handle, 1)
    vote = {"call": row["call"], "by": "ann"}
    for _ in range(2):
        await pushed(handle, rolls, vote)
    (after,) = await pending(handle, 1)
    assert (after, after["votes"]) == (before, ["ann"])
    described = await handle.describe()
    pairs: Any = described.typed_search_attributes
    shown = {pair.key.name: pair.value for pair in pairs}
    assert (shown["AgentName"], shown["AgentStatus"]) == ("office", "waiting")
    assert shown["AgentWaiting"] == ["approval", "ann", "bob"]
    assert await described.memo() == {"waiting": [row["call"]]}
    assert (await handle.query("status"))["queue"] == 3
    assert (await send(handle, "first", id="first"))["state"] == "queued"
    await update(handle, "approve", {"call": row["call"], "by": "bob"})
    assert (await turn(handle, message="joins"))["turn"] == 1
    assert (await turn(handle, message="second"))["turn"] == 3
    await closed(handle)


async def an_edit_a_barrier_and_a_retry(handle: Handle, rolls: bool) -> None:
    """A call whose arguments were edited; behind it a sequential one, which waits in its turn; then counted retries."""
    rows = await pending(handle, 1)
    await update(handle, "approve", {"call": rows[0]["call"], "by": "ann", "args": {"n": 7}})
    (edited,) = await pending(handle, 1)
    await pushed(handle, rolls, {"call": edited["call"], "by": "ann"})
    assert await pending(handle, 1) == [edited]
    await update(handle, "approve", {"call": edited["call"], "by": "bob"})

    async def transfers() -> bool:
        found = await handle.query("pending")
        return [row["tool"] for row in found] == ["transfer"]

    await until(transfers)
    (row,) = await pending(handle, 1)
    await update(handle, "approve", {"call": row["call"], "by": "ann"})
    await turn(handle, turn=1)
    await closed(handle)


async def outside_and_by_itself(handle: Handle, rolls: bool) -> None:
    """A call that was handed over once, and one whose tool deferred it: neither happens again."""
    rows = await pending(handle, 2)
    await pushed(handle, rolls)
    assert await pending(handle, 2) == rows
    for row in rows:
        await update(handle, "complete", {"call": row["call"], "result": {"tool": row["tool"]}})
    await turn(handle, turn=1)
    await closed(handle)


SCENARIOS: dict[str, tuple[Scenario, list[Any]]] = {
    "half a quorum": (
        half_a_quorum,
        [[ToolCallPart("look", {"n": 1}), ToolCallPart("refund", {"n": 2})], "refunded", "one", "two"],
    ),
    "an edit, a barrier and a retry": (
        an_edit_a_barrier_and_a_retry,
        [
            {"moody": {"n": 0}},
            [ToolCallPart("look", {"n": 1}), ToolCallPart("refund", {"n": 2}), ToolCallPart("transfer", {"n": 3})],
            {"moody": {"n": 1}},
            {"moody": {"n": 2}},
            "done",
        ],
    ),
    "outside and by itself": (
        outside_and_by_itself,
        [
            {"look": {"n": 1}},
            {"look": {"n": 2}},
            [ToolCallPart("look", {"n": 1}), ToolCallPart("outside", {"n": 2}), ToolCallPart("asks", {"n": 3})],
            "done",
        ],
    ),
}
