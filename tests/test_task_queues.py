"""Queues of their own for tools: what runs at once, where, and what becomes of a call that waits for room."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ToolCallPart
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from perdure import App, DurableAgent, TaskQueue, ToolPolicy
from perdure.activities.runtime import Runtime
from perdure.worker import tool_worker
from tests.command import ROOT, perdure, running
from tests.crm import Crm
from tests.deciding import answers, cancelled
from tests.harness import Handle, failure_of, until, working
from tests.reading import open_activities
from tests.scripts import Script


async def queues(handle: Handle) -> dict[str, str]:
    """On which queue each type of activity was scheduled."""
    events = (await handle.fetch_history()).events
    scheduled = [
        event.activity_task_scheduled_event_attributes
        for event in events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]
    return {one.activity_type.name: one.task_queue.name for one in scheduled}


async def test_a_queue_runs_no_more_at_once_than_it_may(client: Client, cache: int) -> None:
    """Two runs share the limit; their calls wait on the server and none of their times runs out."""
    crm = Crm(calls=3, limits=TaskQueue(max_concurrent_activities=2))
    async with working(client, crm.app, cache=cache) as runs:
        handles = [await runs.start("sales", "go") for _ in range(2)]
        await until(lambda: crm.running == 2)

        async def all_scheduled() -> bool:
            found = [len(await open_activities(handle)) for handle in handles]
            return found == [3, 3]

        await until(all_scheduled)
        assert len(crm.ran) == 2
        crm.go.set()
        assert [(await handle.result())["output"] for handle in handles] == ["done", "done"]
        assert await queues(handles[0]) == {
            "prepare_run": runs.task_queue,
            "model_request": runs.task_queue,
            "tool:look_up": crm.queue,
        }
    assert (crm.most, sorted(crm.ran)) == (2, [0, 0, 1, 1, 2, 2])


async def test_limits_are_those_that_temporal_keeps(client: Client) -> None:
    limits = TaskQueue(
        max_concurrent_activities=2, max_activities_per_second=7.5, max_task_queue_activities_per_second=100.0
    )
    crm = Crm(calls=3, limits=limits)
    crm.go.set()
    async with Runtime(crm.app) as runtime:
        config: Any = tool_worker(client, runtime, f"{crm.queue}-1", limits).config()
        assert config["max_concurrent_activities"] == 2
        assert config["max_activities_per_second"] == 7.5
        assert config["max_task_queue_activities_per_second"] == 100.0
        unlimited: Any = tool_worker(
            client, runtime, f"{crm.queue}-2", TaskQueue(), max_concurrent_activities=9
        ).config()
        assert unlimited["max_concurrent_activities"] == 9
        assert unlimited["max_activities_per_second"] is None
    async with working(client, crm.app) as runs:
        assert (await runs.run("sales", "go"))["output"] == "done"
    assert sorted(crm.ran) == [0, 1, 2]


async def test_a_call_that_waits_for_room_is_cancelled_without_running(client: Client, cache: int) -> None:
    crm = Crm(calls=2, limits=TaskQueue(max_concurrent_activities=1))
    async with working(client, crm.app, cache=cache) as runs:
        handle = await runs.start("sales", "go")
        await until(lambda: crm.running == 1)
        await cancelled(handle)
        told = await answers(handle)
    (first,) = crm.ran
    assert told[f"c0.{1 - first}"] == ("interrupted", "The call was cancelled with the run.")
    assert "may or may not have run" in told[f"c0.{first}"][1]


async def test_a_queue_without_a_worker_is_told_in_time(client: Client, cache: int) -> None:
    crm = Crm()
    crm.policy = ToolPolicy(task_queue=crm.queue, schedule_to_start=0.5)
    async with working(client, crm.app, cache=cache, without=[crm.queue]) as runs:
        handle = await runs.start("sales", "go")
        assert (await handle.result())["output"] == "done"
        told = await answers(handle)
    assert told["c0.0"] == ("failed", "The call was never started: no worker took it in time.")
    assert not crm.ran


async def test_a_queue_that_only_some_workers_serve(client: Client, cache: int) -> None:
    """One worker has the runs, another the tools; the call waits until that one is there."""
    crm = Crm()
    crm.go.set()
    async with working(client, crm.app, cache=cache, without=[crm.queue]) as runs:
        handle = await runs.start("sales", "go")

        async def waits() -> bool:
            return await open_activities(handle) == ["tool:look_up"]

        await until(waits)
        assert not crm.ran
        async with working(client, crm.app, only=[crm.queue]):
            assert (await handle.result())["output"] == "done"
    assert crm.ran == [0]


async def test_s2_13_at_most_so_many_calls_of_a_run_are_open(client: Client, cache: int) -> None:
    """A limit of each run, by its workflow; more of them wait with no activity scheduled."""
    crm = Crm(calls=5, options={"max_parallel_calls": 2})
    async with working(client, crm.app, cache=cache) as runs:
        handle = await runs.start("sales", "go")
        await until(lambda: crm.running == 2)
        assert len(await open_activities(handle)) == 2
        crm.go.set()
        assert (await handle.result())["output"] == "done"
    assert (crm.most, sorted(crm.ran)) == (2, [0, 1, 2, 3, 4])


async def test_s2_13_of_two_failures_the_first_in_call_order_ends_the_run(client: Client, cache: int) -> None:
    second_failed = asyncio.Event()

    async def pay(n: int) -> str:
        """Ends the run, the second call first."""
        if n == 0:
            await second_failed.wait()
        second_failed.set()
        raise ApplicationError(f"card {n}", type="Card", non_retryable=True)

    script = Script([ToolCallPart("pay", {"n": 0}), ToolCallPart("pay", {"n": 1})])
    async with working(client, App(agents=[Agent(script.model, name="shop", tools=[pay])]), cache=cache) as runs:
        failure = await failure_of(await runs.start("shop", "go"))
    assert (failure.type, failure.message) == ("Card", "card 0")


async def test_perdure_worker_says_what_it_serves(client: Client) -> None:
    address = client.service_client.config.target_host
    options = ("worker", "tests.queue_app:app", "--address", address, "--task-queue", f"runs-{uuid.uuid4().hex[:8]}")
    async with running(*options, cwd=ROOT) as worker:
        assert "and the tools of 'crm', 'gpu'" in await worker.line("polls")
    async with running(*options, "--only", "gpu", cwd=ROOT) as worker:
        assert "worker polls only the tools of 'gpu' at" in await worker.line("polls")
    refused = await perdure(*options, "--without", "cmr", cwd=ROOT)
    assert refused.code == 2
    assert "no queue is named 'cmr'. Known queues, of App(task_queues=…): ['crm', 'gpu']" in refused.err


async def test_workers_that_stop_are_told_together(client: Client) -> None:
    """Each call ends when both have heard that their workers stop: one after the other they would wait for ever."""
    told: dict[str, asyncio.Event] = {"here": asyncio.Event(), "there": asyncio.Event()}
    began: list[str] = []

    async def wait(name: str) -> str:
        began.append(name)
        await activity.wait_for_worker_shutdown()
        told[name].set()
        await asyncio.gather(*(event.wait() for event in told.values()))
        return name

    async def here() -> str:
        """On the queue of the runs."""
        return await wait("here")

    async def there() -> str:
        """On a queue of its own."""
        return await wait("there")

    queue = f"there-{uuid.uuid4().hex[:8]}"
    agent = Agent(Script({"here": {}, "there": {}}, "done").model, name="both", tools=[here, there])
    durable = DurableAgent(agent, policies={"there": ToolPolicy(task_queue=queue)})
    app = App(agents=[durable], task_queues={queue: TaskQueue()})
    async with working(client, app, check=False, grace=timedelta(seconds=30)) as runs:
        handle = await runs.start("both", "go")
        await until(lambda: sorted(began) == ["here", "there"])
    async with working(client, app, task_queue=runs.task_queue):
        assert (await handle.result())["output"] == "done"
        assert {text for _, text in (await answers(handle)).values()} == {"here", "there"}
    assert sorted(began) == ["here", "there"]
