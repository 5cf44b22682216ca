"""Continue-as-new at every moment of rest: whoever looks at a run, decides or waits, doesn't notice.

The server of `rolling_client` suggests it after 20 events. `pushed` makes so many events at one moment that the run
rolls over there; the same scenario on the ordinary server must come to the same.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from operator import itemgetter
from typing import Any

import pytest
from pydantic_ai import Agent, CallDeferred, FunctionToolset, ModelRetry, RunContext
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from temporalio.client import Client

from perdure import App, Approval, DurableAgent, ToolPolicy
from perdure.contracts import Notification
from tests.deciding import pending, update
from tests.harness import Handle, chain, until, working
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed, send, turn

HOUR = timedelta(hours=1)
TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)?")


class Office:
    """An agent with a tool of every kind, and everything that ever happened outside."""

    def __init__(self, *turns: Any) -> None:
        self.script = Script(*turns)
        self.ran: list[Any] = []
        self.told: list[tuple[str, str]] = []
        self.handed: list[str] = []

    async def notifier(self, notification: Notification) -> None:
        self.told.append((notification.event, notification.call))

    async def dispatch(self, call: Any) -> None:
        self.handed.append(call.call)

    def app(self) -> App:
        tools = FunctionToolset[None](id="office", max_retries=2)
        outside = ExternalToolset[None]([ToolDefinition(name="outside")], id="outside")

        @tools.tool_plain
        def look(n: int) -> str:
            self.ran.append(("look", n))
            return f"saw {n}"

        @tools.tool_plain
        def refund(n: int) -> str:
            self.ran.append(("refund", n))
            return f"refunded {n}"

        @tools.tool_plain(sequential=True)
        def transfer(n: int) -> str:
            self.ran.append(("transfer", n))
            return f"transferred {n}"

        @tools.tool_plain
        def moody(n: int) -> str:
            self.ran.append(("moody", n))
            if n < 2:
                raise ModelRetry(f"not {n}")
            return f"fine with {n}"

        @tools.tool
        def asks(ctx: RunContext[None], n: int) -> str:
            self.ran.append(("asks", n))
            raise CallDeferred

        both = Approval(approvers=["ann", "bob"], quorum=2, expires_after=HOUR, reminders=[HOUR / 2], allow_edit=True)
        policies = {
            "refund": ToolPolicy(approval=both),
            "transfer": ToolPolicy(approval=Approval()),
            "outside": ToolPolicy(dispatch=self.dispatch, wait=HOUR),
        }
        agents = [DurableAgent(Agent(self.script.model, name="office", toolsets=[tools, outside]), policies=policies)]
        return App(agents=agents, notifier=self.notifier)


async def run_ids(handle: Handle) -> str:
    """The run id of the chain's latest run."""
    return (await handle.describe()).run_id


async def pushed(handle: Handle, rolls: bool, vote: dict[str, Any] | None = None) -> None:
    """Roll over here and now, where the server suggests it; else nothing. A vote that is given once more changes
    nothing, but something was done; a signal that nobody knows is only events: it rolls a run over only where
    something was done since the last time."""
    before = await run_ids(handle)
    for _ in range(30 if rolls else 0):
        if await run_ids(handle) != before:
            return
        await handle.signal("approve" if vote else "nothing", vote or {})
        await asyncio.sleep(0.1)  # it continues when nothing comes for a moment
    assert not (rolls and vote), "the run didn't roll over"


async def compared(handle: Handle, office: Office) -> dict[str, Any]:
    """All that a run came to, without times."""
    page = await handle.query("transcript", {})
    status = await handle.query("status")
    known: dict[str, Any] = {
        "entries": page["entries"],
        "audit": await handle.query("audit"),
        "usage": status["usage"],
        "result": await handle.result(),
        "ran": office.ran,
        "told": sorted(office.told),
        "handed": office.handed,
        "requests": len(office.script.requests),
    }
    assert known["result"].pop("audit") == known["audit"]
    known["audit"].sort(key=itemgetter("call"))  # what happens to two calls at once has no order
    return json.loads(TIMES.sub("T", json.dumps(known)))


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


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_run_that_rolls_over_comes_to_the_same(
    client: Client, rolling_client: Client, cache: int, name: str
) -> None:
    scenario, turns = SCENARIOS[name]
    found: list[dict[str, Any]] = []
    for server, rolls in ((client, False), (rolling_client, True)):
        office = Office(*turns)
        async with working(server, office.app(), cache=cache) as runs:
            handle = await runs.start("office", "go", **SESSION)
            await scenario(handle, rolls)
            found.append(await compared(handle, office))
            assert (len(await chain(handle)) > 1) == rolls
    assert found[0] == found[1]


async def test_a_session_rolls_over_between_turns_and_steps(rolling_client: Client, cache: int) -> None:
    office = Office("hello", {"look": {"n": 1}}, {"look": {"n": 2}}, {"look": {"n": 3}}, "seen", "bye")
    async with working(rolling_client, office.app(), cache=cache) as runs:
        handle = await runs.start("office", "hi", **SESSION)
        assert await answered(handle, "look") == "seen"
        assert await answered(handle, "bye", id="m3") == "bye"
        result = await closed(handle)
        assert (result["output"], result["turns"], result["steps"]) == ("bye", 3, 6)
        assert office.ran == [("look", 1), ("look", 2), ("look", 3)]
        assert len(await chain(handle)) > 2


async def test_an_idle_session_rolls_over_once_and_not_for_nothing(rolling_client: Client, cache: int) -> None:
    office = Office("hello", "bye")
    async with working(rolling_client, office.app(), cache=cache) as runs:
        handle = await runs.start("office", "hi", session={"idle_timeout": "PT1H"})
        await turn(handle, turn=1)
        await pushed(handle, True)
        rolled = await run_ids(handle)
        assert len(await chain(handle)) == 2
        for _ in range(10):
            await handle.signal("nothing", {})
        assert (await handle.query("status"))["state"] == "idle"
        assert await run_ids(handle) == rolled, "nothing was done, but it rolled over"
        assert await answered(handle, "bye") == "bye"
        assert (await closed(handle))["turns"] == 2
