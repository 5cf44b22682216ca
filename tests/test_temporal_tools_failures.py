"""What becomes of a call that somebody else's activity makes, where that fails, is lost, or is cancelled."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import ToolPolicy
from tests.deciding import answers, cancelled, only, update
from tests.depot import depot
from tests.harness import Handle, attempts, failure_of, until, working
from tests.reading import open_activities
from tests.remote import Warehouse, remote
from tests.scripts import Script
from tests.sessions import SESSION, closed, send, turn


async def only_holds(handle: Handle) -> bool:
    """Whether nothing but the parcel is held."""
    return await open_activities(handle) == ["HoldParcel"]


@pytest.mark.parametrize(
    ("sku", "options", "text"),
    [
        ("none", {}, "The call failed: OutOfStock."),
        ("none", {"tells_errors": True}, "The call failed: OutOfStock: password=hunter2"),
        ("told", {}, "That sku is retired: use B-2."),
    ],
    ids=["redacted", "told", "tool_failed"],
)
async def test_an_error_is_told_by_its_type(client: Client, sku: str, options: dict[str, Any], text: str) -> None:
    warehouse = Warehouse()
    script = Script({"reserve": {"order": {"sku": sku}}}, "done")
    policies = {"reserve": ToolPolicy(effect="safe", backoff=0.1)}
    async with remote(client, [warehouse.reserve]) as queue:
        async with working(client, depot(queue, script, policies, **options)) as runs:
            handle = await runs.start("depot", "go")
            await handle.result()
            assert await only(handle) == ("failed", text)
    assert len(warehouse.ran) == 1, "neither is repeated: one is non-retryable, the other meant for the model"


async def test_a_type_that_nobody_serves_there_is_told(client: Client) -> None:
    script = Script({"nowhere": {"which": "x"}}, "done")
    async with remote(client, [Warehouse().ping]) as queue:
        async with working(client, depot(queue, script)) as runs:
            handle = await runs.start("depot", "go")
            await handle.result()
            assert await only(handle) == ("failed", "The call failed: NotFoundError.")


@pytest.mark.parametrize(("effect", "tries"), [("unsafe", 1), ("idempotent", 3)])
async def test_it_is_repeated_by_its_effect_with_the_same_id(
    client: Client, cache: int, effect: Any, tries: int
) -> None:
    warehouse = Warehouse()
    script = Script({"hold": {"which": "flaky"}}, "done")
    policies = {"hold": ToolPolicy(effect=effect, backoff=0.1)}
    async with remote(client, [warehouse.hold]) as queue:
        async with working(client, depot(queue, script, policies), cache=cache) as runs:
            handle = await runs.start("depot", "go")
            await handle.result()
            expected = ("failed", "The call failed: ConnectionError.") if tries == 1 else ("success", "held")
            assert await only(handle) == expected
            assert (await attempts(handle))[1] == tries
    assert len(warehouse.ran) == tries
    assert len(set(warehouse.ids)) == 1


async def test_a_lost_attempt_of_an_unsafe_call_is_unknown(client: Client) -> None:
    script = Script({"hold": {"which": "lost"}}, "done")
    async with remote(client, [Warehouse().hold]) as queue:
        async with working(client, depot(queue, script)) as runs:
            handle = await runs.start("depot", "go")
            await handle.result()
            outcome, text = await only(handle)
            assert outcome == "interrupted"
            assert text.endswith("may not have run. Check before you repeat it.")


async def test_the_timeout_is_one_attempts_time(client: Client) -> None:
    warehouse = Warehouse()
    script = Script({"hold": {"which": "x"}}, "done")
    async with remote(client, [warehouse.hold]) as queue:
        async with working(client, depot(queue, script, {"hold": ToolPolicy(timeout=0.5)})) as runs:
            handle = await runs.start("depot", "go")
            await handle.result()
            outcome, text = await only(handle)
            assert (outcome, text[:29]) == ("interrupted", "The call did not end in time.")
            warehouse.go.set()


async def test_a_queue_without_a_worker_is_waited_for_or_not(client: Client, cache: int) -> None:
    warehouse = Warehouse()
    warehouse.go.set()
    script = Script(
        [ToolCallPart("hold", {"which": "x"}, tool_call_id="c1"), ToolCallPart("answer", {"which": "x"}, "c2")], "done"
    )
    queue = "a queue whose worker comes later"
    policies = {"answer": ToolPolicy(schedule_to_start=0.2)}
    async with working(client, depot(queue, script, policies), cache=cache) as runs:
        handle = await runs.start("depot", "go")

        await until(lambda: only_holds(handle))
        async with remote(client, [warehouse.hold], task_queue=queue):
            await handle.result()
        assert await answers(handle) == {
            "c1": ("success", "held"),
            "c2": ("failed", "The call was never started: no worker took it in time."),
        }


@pytest.mark.parametrize("tool", ["hold", "beat"])
async def test_a_cancelled_run_waits_for_the_grace_and_no_longer(client: Client, cache: int, tool: str) -> None:
    warehouse = Warehouse()
    script = Script({tool: {"which": "beats" if tool == "beat" else "x"}})
    policies = {tool: ToolPolicy(cancel_grace=0.5, heartbeat=2 if tool == "beat" else 30)}
    async with remote(client, [warehouse.hold]) as queue:
        async with working(client, depot(queue, script, policies), cache=cache) as runs:
            handle = await runs.start("depot", "go")
            await until(lambda: len(warehouse.ran) == 1)
            await cancelled(handle)
            outcome, text = await only(handle)
            assert (outcome, text[:22]) == ("interrupted", "The run was cancelled.")
            assert not warehouse.go.is_set()
            warehouse.go.set()


async def test_an_interrupted_turn_gives_its_call_up_and_the_session_goes_on(client: Client, cache: int) -> None:
    warehouse = Warehouse()
    script = Script({"hold": {"which": "x"}}, "better")
    policies = {"hold": ToolPolicy(cancel_grace=0.3)}
    async with remote(client, [warehouse.hold]) as queue:
        async with working(client, depot(queue, script, policies), cache=cache) as runs:
            handle = await runs.start("depot", "go", **SESSION)
            await until(lambda: len(warehouse.ran) == 1)
            await update(handle, "interrupt", {})
            assert (await turn(handle, turn=1))["state"] == "interrupted"
            await send(handle, "again")
            assert (await turn(handle, turn=2))["output"]["value"] == "better"
            assert (await closed(handle))["turns"] == 2
            warehouse.go.set()  # not before: an activity that ends just as the run does makes the server ask again


async def test_a_sibling_that_ends_the_run_waits_for_the_call(client: Client) -> None:
    warehouse = Warehouse()
    script = Script([ToolCallPart("hold", {"which": "x"}, "c1"), ToolCallPart("ends", {}, "c2")])
    async with remote(client, [warehouse.hold]) as queue:
        async with working(client, depot(queue, script)) as runs:
            handle = await runs.start("depot", "go")
            await until(lambda: len(warehouse.ran) == 1)

            await until(lambda: only_holds(handle))
            warehouse.go.set()
            assert (await failure_of(handle)).type == "Over"
            assert (await answers(handle))["c1"] == ("success", "held")
