"""What is sent in bursts while a run continues as new again and again: nothing lost, nothing doubled, no error."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from temporalio.client import Client

from perdure import App, Approval, Limits
from perdure.client import PerdureClient, Refused
from perdure.client.run import RunHandle
from perdure.contracts import Decided, TurnView
from tests.deciding import pending, update
from tests.harness import LONG, Handle, Runs, chain, until, working
from tests.rolling import events, pushed, run_ids
from tests.scripts import Script
from tests.sessions import SESSION, closed, send, turn, user_texts
from tests.shop import shop

pytestmark = pytest.mark.timeout(240)
QUORUM = Approval(approvers=[f"p{n}" for n in range(10)], quorum=10)


def unlimited(script: Script, ran: list[Any]) -> App:
    """The shop, for more than 50 requests."""
    return App(agents=[replace(shop(script, ran).agents["shop"], limits=Limits(requests=None))])


def careful(runs: Runs, handle: Handle) -> RunHandle:
    """The run as perdure's client has it: it sends again what met a run that was just continuing as new."""
    return PerdureClient(runs.client).run(handle.id)


async def test_messages_sent_by_update_while_it_rolls_over(rolling_client: Client, cache: int) -> None:
    """Four senders, six messages each, every one of them sent twice."""
    script = Script(*({"look": {"n": n}} if n % 2 == 0 else f"seen {n}" for n in range(48)))
    ran: list[Any] = []
    async with working(rolling_client, unlimited(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", **SESSION)
        run = careful(runs, handle)

        async def sender(name: str) -> None:
            for n in range(6):
                id = f"{name}{n}"
                sent = await asyncio.gather(run.send(id, id=id), run.send("again", id=id))
                assert all(one.messages == [id] for one in sent)

        await asyncio.gather(*(sender(name) for name in "abcd"))
        await answered_all(handle, [f"{name}{n}" for name in "abcd" for n in range(6)])
        for name in "abcd":
            mine = [text for text in await texts(handle) if text[0] == name]
            assert mine == [f"{name}{n}" for n in range(6)], "in the order in which one sender sent them"
        assert (await closed(handle))["turns"] == 24
        assert sorted(ran) == [("look", n) for n in range(0, 48, 2)]
        assert len(await chain(handle)) > 4


async def answered_all(handle: Handle, ids: list[str]) -> None:
    """Every message has had its turn, and only one; it had the text that it was first sent with, or its repeat's."""

    async def done() -> bool:
        status = await handle.query("status")
        return (status["turn"], status["state"]) == (len(ids), "idle")

    await until(done, seconds=240)
    turns = [await handle.query("turn", {"turn": number}) for number in range(1, len(ids) + 1)]
    assert Counter(id for one in turns for id in one["messages"]) == Counter(ids)
    assert {one["state"] for one in turns} == {"done"}


async def texts(handle: Handle) -> list[str]:
    """The ids of the messages, as the transcript has them."""
    page = await handle.query("transcript", {})
    return [entry["id"] for entry in page["entries"] if entry["kind"] == "user"]


@pytest.mark.timeout(600)
async def test_a_hundred_signals_over_many_roll_overs(rolling_client: Client, cache: int) -> None:
    script = Script(*(f"turn {n}" for n in range(100)))
    async with working(rolling_client, unlimited(script, []), cache=cache) as runs:
        handle = await runs.start("shop", timeout=LONG, **SESSION)
        for burst in range(10):
            ids = [f"m{10 * burst + n}" for n in range(10)]
            await asyncio.gather(*(handle.signal("send", {"content": id, "id": id}) for id in ids))
        await answered_all(handle, [f"m{n}" for n in range(100)])
        assert sorted(await user_texts(handle)) == sorted(f"m{n}" for n in range(100))
        assert (await handle.query("status"))["rejected"] == []
        assert (await closed(handle))["turns"] == 100
        assert len(await chain(handle)) > 10


async def test_ten_people_approve_at_once_while_it_rolls_over(rolling_client: Client, cache: int) -> None:
    """Again and again: each roll-over finds some votes given and some on their way."""
    script = Script(*({"refund": {"n": n // 2}} if n % 2 == 0 else f"refunded {n // 2}" for n in range(20)))
    ran: list[Any] = []
    async with working(rolling_client, shop(script, ran, QUORUM), cache=cache) as runs:
        handle = await runs.start("shop", "go", **SESSION)
        run = careful(runs, handle)
        for number in range(10):
            (row,) = await pending(handle, 1)
            voted = await asyncio.gather(*(run.approve(row["call"], by=f"p{n}") for n in range(10)))
            assert Counter(one.outcome for one in voted) == {"voted": 9, "approved": 1}
            assert sorted(one.needed for one in voted) == list(range(10))
            assert (await turn(handle, turn=number + 1))["state"] == "done"
            assert ran == [("refund", n) for n in range(number + 1)]
            if number < 9:
                await send(handle, "more") if cache else await run.send("more")
        result = await closed(handle)
        assert [row["event"] for row in result["audit"]].count("voted") == 90
        assert [row["event"] for row in result["audit"]].count("refused") == 0
        assert len(await chain(handle)) > 5


async def test_one_of_ten_wins_while_it_rolls_over(rolling_client: Client, cache: int) -> None:
    """Ten clients decide one call, at the moment at which it continues as new."""
    script = Script(*({"refund": {"n": n // 2}} if n % 2 == 0 else "done" for n in range(12)))
    ran: list[Any] = []
    async with working(rolling_client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go", **SESSION)
        run = careful(runs, handle)
        for number in range(6):
            (row,) = await pending(handle, 1)
            before = await run_ids(handle)
            found, _ = await asyncio.gather(
                asyncio.gather(*(run.approve(row["call"], by=f"p{n}") for n in range(10)), return_exceptions=True),
                events(handle, before),
            )
            won = [one for one in found if isinstance(one, Decided)]
            late = [one.type for one in found if isinstance(one, Refused)]
            assert (len(won), len(late)) == (1, 9), (found, await handle.query("audit"))
            assert set(late) <= {"AlreadyDecided", "NotPending"}
            assert (await turn(handle, turn=number + 1))["state"] == "done"
            assert ran == [("refund", n) for n in range(number + 1)]
            if number < 5:
                await run.send("more")
        assert (await closed(handle))["turns"] == 6
        assert len(await chain(handle)) > 3


async def test_a_session_is_started_once_by_who_sends_to_it_at_once(rolling_client: Client, cache: int) -> None:
    """Ten programs send to a session that isn't there, and go on sending while it rolls over."""
    script = Script(*(f"turn {n}" for n in range(30)))
    async with working(rolling_client, unlimited(script, []), cache=cache) as runs:
        perdure, id = PerdureClient(rolling_client), f"chat-{uuid.uuid4().hex[:8]}"

        async def program(name: int) -> list[TurnView]:
            asked: dict[str, Any] = {"id": id, "task_queue": runs.task_queue}
            ids = [f"p{name}.{n}" for n in range(3)]
            return [(await perdure.send("shop", one, message_id=one, **asked))[1] for one in ids]

        sent = await asyncio.gather(*(program(name) for name in range(10)))
        handle: Handle = rolling_client.get_workflow_handle(id)
        runs.handles.append(handle)
        await answered_all(handle, [view.messages[0] for views in sent for view in views])
        assert (await closed(handle))["turns"] == 30
        assert len(await chain(handle)) > 2


async def test_interrupts_and_messages_race_with_roll_overs(rolling_client: Client, cache: int) -> None:
    """A call waits, events come, and xx."""
    script = Script(*({"refund": {"n": n // 2}} if n % 2 == 0 else f"fine {n // 2}" for n in range(16)))
    ran: list[Any] = []
    async with working(rolling_client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go", **SESSION)
        run = careful(runs, handle)
        for number in range(8):
            (row,) = await pending(handle, 1)
            before = await run_ids(handle)
            await asyncio.gather(
                events(handle, before), run.send("never mind", id=f"i{number}", when_busy="interrupt", by="ann")
            )
            ended = await turn(handle, message=f"i{number}")
            assert (ended["state"], ended["output"]["value"]) == ("done", f"fine {number}")
            with pytest.raises(Refused, match="superseded"):
                await run.approve(row["call"], by="ann")
            if number < 7:
                await run.send("more")
        result = await closed(handle)
        assert (result["turns"], ran) == (16, [])
        assert [one["event"] for one in result["audit"]].count("superseded") == 8
        assert len(await chain(handle)) > 3


async def test_a_signal_of_somebody_who_decides_while_it_rolls_over_is_heard(
    rolling_client: Client, cache: int
) -> None:
    """Signals know no answer, so none may be lost: votes by signal among the events that make it roll over."""
    script = Script({"refund": {"n": 1}}, "refunded")
    ran: list[Any] = []
    async with working(rolling_client, shop(script, ran, QUORUM), cache=cache) as runs:
        handle = await runs.start("shop", "go", **SESSION)
        (row,) = await pending(handle, 1)
        for n in range(9):
            await handle.signal("approve", {"call": row["call"], "by": f"p{n}"})
            await pushed(handle, n % 3 == 2, {"call": row["call"], "by": f"p{n}"})
        (waits,) = await pending(handle, 1)
        assert waits["votes"] == [f"p{n}" for n in range(9)]
        await handle.signal("approve", {"call": row["call"], "by": "p9"})
        assert (await turn(handle, turn=1))["output"]["value"] == "refunded"
        assert ran == [("refund", 1)]
        await closed(handle)
        assert len(await chain(handle)) >= 3


@pytest.mark.parametrize("verb", ["approve", "deny"])
async def test_a_decision_counts_where_others_come_too_late_just_as_it_rolls_over(
    rolling_client: Client, cache: int, verb: str
) -> None:
    """One workflow task brings what makes the run roll over and three decisions, of which two have to be told that they
    are late: the run doesn't continue between that and what the first decision leads to."""
    script = Script({"refund": {"n": 1}}, "done")
    ran: list[Any] = []
    app = shop(script, ran)
    async with working(rolling_client, app, cache=cache, check=False) as first:
        handle = await first.start("shop", "go", **SESSION)
        (row,) = await pending(handle, 1)
    for _ in range(30):
        await handle.signal("nothing", {})
    sent = [asyncio.create_task(update(handle, verb, {"call": row["call"], "by": by})) for by in "abc"]
    await until(lambda: offered(handle))
    async with working(rolling_client, shop(script, ran), cache=cache, task_queue=first.task_queue) as runs:
        runs.handles.append(handle)
        found = await asyncio.gather(*sent, return_exceptions=True)
        assert [isinstance(one, BaseException) for one in found].count(True) == 2, found
        ended = await turn(handle, turn=1)
        assert ended["output"]["value"] == "done"
        assert len(ran) == (verb == "approve")
        result = await closed(handle)
        assert [one["event"] for one in result["audit"]].count("asked") == 1
        assert len(await chain(handle)) > 1


async def offered(handle: Handle) -> bool:
    """Whether a workflow task waits for a worker."""
    return (await handle.describe()).raw_description.HasField("pending_workflow_task")
