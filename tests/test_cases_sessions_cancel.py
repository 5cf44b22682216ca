"""Case K1 in sessions: cancelled at any moment, in the three ways of `tests.benches`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from tests.benches import Bench, Way, any_way, bench
from tests.deciding import answers, cancelled_soon, pending
from tests.gate import Gate
from tests.harness import Handle, until
from tests.scripts import Script
from tests.sessions import idle, send
from tests.shop import shop

way = any_way

MOMENTS = (
    "idle",
    "random",
    "rolling",
    "queued",
    "interrupting",
)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_case_k1_a_session_is_cancelled_at_any_moment(
    client: Client, rolling_client: Client, way: Way, moment: str
) -> None:
    """It ends canceled, every call has its answer, and nothing ran without having been allowed."""
    rng = random.Random(moment)
    server = rolling_client if moment == "rolling" else client
    ran: list[Any] = []
    script = Script(*[{"look": {"n": n}} for n in range(6)], {"refund": {"n": 1}}, "done", "never")
    async with bench(server, lambda: shop(script, ran), way) as here:
        for _ in range(4 if moment == "random" else 2):
            handle = await here.start("shop", None if moment == "idle" else "go")
            await MOMENT[moment](here, handle, rng)
            await cancelled_soon(handle, seconds=20)
            status = await handle.query("status")
            assert (status["state"], status["pending"], status["open_calls"]) == ("done", [], [])
    assert [one for one in ran if one[0] == "refund"] == []


async def while_idle(here: Bench, handle: Handle, rng: random.Random) -> None:
    await idle(handle)
    await here.pause()


async def after_a_while(here: Bench, handle: Handle, rng: random.Random) -> None:
    """Wherever the run is then."""
    await asyncio.sleep(rng.uniform(0, 0.8))


async def while_rolling(here: Bench, handle: Handle, rng: random.Random) -> None:
    """Events come that make it continue as new, and the cancel comes among them."""
    await pending(handle, 1)
    await here.pause()
    await asyncio.gather(*(handle.signal("nothing", {}) for _ in range(rng.randrange(1, 25))))


async def while_queued(here: Bench, handle: Handle, rng: random.Random) -> None:
    """A call waits, and so does a message: neither has its turn any more."""
    await pending(handle, 1)
    await send(handle, "later", id="later")
    await here.pause()
    assert (await handle.query("status"))["queue"] == 1


async def while_interrupting(here: Bench, handle: Handle, rng: random.Random) -> None:
    """Somebody interrupts, and somebody else cancels."""
    if rng.random() < 0.5:
        await pending(handle, 1)
        await here.pause()
    await asyncio.sleep(rng.uniform(0, 0.2))
    await handle.signal("interrupt", {"by": "ann"})


Moment = Callable[[Bench, Handle, random.Random], Awaitable[None]]
MOMENT: dict[str, Moment] = {
    "idle": while_idle,
    "random": after_a_while,
    "rolling": while_rolling,
    "queued": while_queued,
    "interrupting": while_interrupting,
}


async def test_case_k1_a_cancel_while_an_interrupt_is_being_carried_out(client: Client, way: Way) -> None:
    """The interrupt waits for a tool that needs its time to end; the cancel comes meanwhile, and wins."""
    gate = Gate()
    async with bench(client, gate.app, way) as here:
        handle = await here.start("gate", "work")
        (row,) = await pending(handle, 1)
        await until(lambda: gate.ran == ["began 1"])
        await asyncio.gather(
            handle.signal("interrupt", {"by": "ann"}), handle.signal("send", {"content": "next", "id": "next"})
        )
        await cancelled_soon(handle, seconds=20)
        assert gate.ran == ["began 1"], "the call that waited didn't run"
        assert set(await answers(handle)) == {"w1", "r2"}
        assert row["tool"] == "refund"


async def test_case_k1_a_cancel_in_the_workflow_task_that_rolls_over(rolling_client: Client, way: Way) -> None:
    """One workflow task brings what makes the run continue as new, and its cancel: it ends."""
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    async with bench(rolling_client, lambda: shop(script, ran), way) as here:
        handle = await here.start("shop", "go")
        await pending(handle, 1)
        await here.worker.aclose()
        for _ in range(30):
            await handle.signal("nothing", {})
        await handle.cancel()
        await here.hire()
        try:
            async with asyncio.timeout(10):
                with pytest.raises(WorkflowFailureError):
                    await handle.result()
        except TimeoutError:
            await handle.terminate()
            raise
