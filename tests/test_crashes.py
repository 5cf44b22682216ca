"""Workers that die in the middle of something, and runs that go on in another one."""

from __future__ import annotations

import asyncio
import signal
import uuid
from pathlib import Path

import pytest
from pydantic_ai import Agent
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy, current_call
from tests.harness import Handle, activities, check_run, conversation, replay, until, working
from tests.resets import reset
from tests.scripts import Script
from tests.sites import Site, stopped


@pytest.fixture
def site(client: Client, tmp_path: Path) -> Site:
    return Site(client, tmp_path, f"crash-{uuid.uuid4().hex[:12]}")


async def kinds(handle: Handle) -> list[str]:
    """The kind of each outcome of a run."""
    page = await handle.query("transcript")
    return [row["kind"] for entry in page["entries"] for row in entry.get("outcomes", [])]


async def test_run_goes_on_after_the_worker_is_killed_during_a_model_request(site: Site) -> None:
    async with site.worker() as first:
        handle = await site.start("model")
        await until(lambda: len(site.rows("asked")) == 1)
        await stopped(first, signal.SIGKILL)
    site.release()
    async with site.worker():
        assert (await handle.result())["output"] == "the model answered"
        assert len(site.rows("asked")) == 2
        await check_run(handle)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "terminated"])
async def test_unsafe_tool_is_never_run_twice_and_its_call_is_unknown(site: Site, how: signal.Signals) -> None:
    async with site.worker(grace=0.2) as first:
        handle = await site.start("unsafe")
        await until(lambda: len(site.rows("ran")) == 1)
        await stopped(first, how)
    site.release()
    async with site.worker():
        output = (await handle.result())["output"]
        assert await kinds(handle) == ["unknown"]
        await check_run(handle)
    assert output.startswith("interrupted: ")
    assert "may or may not have run" in output
    assert len(site.rows("ran")) == 1


@pytest.mark.parametrize("effect", ["idempotent", "safe"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "terminated"])
async def test_retryable_tool_runs_again_with_the_same_key(site: Site, effect: str, how: signal.Signals) -> None:
    async with site.worker(grace=0.2) as first:
        handle = await site.start(effect)
        await until(lambda: len(site.rows("ran")) == 1)
        await stopped(first, how)
    site.release()
    async with site.worker():
        assert (await handle.result())["output"] == f"success: {effect} ran in attempt 2"
        assert await kinds(handle) == ["returned"]
        await check_run(handle)
    ran = site.rows("ran")
    assert [row["attempt"] for row in ran] == [1, 2]
    assert len({row["key"] for row in ran}) == 1
    assert len({row["pid"] for row in ran}) == 2
    assert len(site.rows("asked")) == 2, "one request before the call and one after it"


async def test_tool_ends_within_the_grace_of_a_worker_that_is_told_to_stop(site: Site) -> None:
    async with site.worker(grace=30) as first:
        handle = await site.start("unsafe")
        await until(lambda: len(site.rows("ran")) == 1)
        first.send_signal(signal.SIGTERM)
        site.release()
        await asyncio.wait_for(first.wait(), 20)
    async with site.worker():
        assert (await handle.result())["output"] == "success: unsafe ran in attempt 1"
        assert await kinds(handle) == ["returned"]
        await check_run(handle)


async def test_run_goes_on_after_every_worker_died_between_two_steps(site: Site) -> None:
    """The tool's answer is recorded while no worker polls: the first is killed with its workflow task still to come."""
    async with site.worker() as first:
        handle = await site.start("unsafe")
        await until(lambda: len(site.rows("ran")) == 1)
        site.release()
        await until(lambda: _completed_activities(handle, 3))
        await stopped(first, signal.SIGKILL)
    async with site.worker():
        assert (await handle.result())["output"] == "success: unsafe ran in attempt 1"
        assert await activities(handle) == ["model_request", "tool:unsafe", "model_request"]
        await check_run(handle)
    assert len(site.rows("ran")) == 1


async def _completed_activities(handle: Handle, count: int) -> bool:
    history = await handle.fetch_history()
    completed = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
    return sum(event.event_type == completed for event in history.events) >= count


async def test_a_run_started_with_no_worker_waits_for_one(site: Site) -> None:
    handle = await site.start("safe")
    site.release()
    async with site.worker():
        assert (await handle.result())["output"] == "success: safe ran in attempt 1"


async def test_the_idempotency_key_is_the_same_after_a_reset(client: Client, cache: int) -> None:
    keys: list[tuple[str, str]] = []

    def pay(cents: int) -> str:
        keys.append((current_call().idempotency_key, current_call().run_id))
        return "paid"

    script = Script({"pay": {"cents": 5}}, {"pay": {"cents": 5}}, "done")
    policies = {"pay": ToolPolicy(effect="idempotent")}
    agent = DurableAgent(Agent(script.model, name="pays", tools=[pay]), policies=policies)
    async with working(client, App(agents=[agent]), cache=cache, check=False) as runs:
        handle = await runs.start("pays", "go")
        await handle.result()
        assert len(set(keys)) == 2, "two calls of one tool with equal arguments are two calls"
        again = await reset_before(client, handle, "tool:pay")
        assert (await again.result())["output"] == "done"
        await replay(await again.fetch_history())
        assert again.run_id != handle.first_execution_run_id
    assert keys[2:] == keys[:2]
    assert {run_id for _, run_id in keys} == {handle.first_execution_run_id}


async def reset_before(client: Client, handle: Handle, activity: str) -> Handle:
    """Reset a run to the workflow task that first scheduled the activity."""
    task = next(
        event.activity_task_scheduled_event_attributes.workflow_task_completed_event_id
        for event in (await handle.fetch_history()).events
        if event.activity_task_scheduled_event_attributes.activity_type.name == activity
    )
    return await reset(client, handle, task)


async def test_a_reset_run_has_the_same_conversation(client: Client) -> None:
    script = Script({"look": {}}, "done")

    def look() -> str:
        return "a view"

    async with working(client, App(agents=[Agent(script.model, name="looks", tools=[look])]), check=False) as runs:
        handle = await runs.start("looks", "go")
        await handle.result()
        before = [message.parts for message in (await conversation(handle)).messages]
        again = await reset_before(client, handle, "tool:look")
        await again.result()
        await replay(await again.fetch_history())
        after = [message.parts for message in (await conversation(again)).messages]
    assert [[part.part_kind for part in parts] for parts in after] == [[p.part_kind for p in parts] for parts in before]
