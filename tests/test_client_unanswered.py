"""Queries that nobody answers: why is told from what the server knows."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker

from perdure.client import (
    NoAnswer,
    PerdureClient,
    RunFailed,
    RunHandle,
)


@workflow.defn(name="AgentWorkflow", sandboxed=False)
class Broken:
    """Fails its workflow task, as an older worker does where a run has gone on with a newer one."""

    @workflow.run
    async def run(self, request: dict[str, Any]) -> None:
        raise RuntimeError("broken on purpose")


@workflow.defn(name="AgentWorkflow", sandboxed=False)
class Busy:
    """Leaves the worker no time to answer."""

    @workflow.run
    async def run(self, request: dict[str, Any]) -> None:
        time.sleep(0.8)  # noqa: ASYNC251 (that is the point)


def place(client: Client, queue: str) -> str:
    """How a message names a task queue."""
    return f"task queue {queue!r} at {client.service_client.config.target_host} (namespace 'default')"


async def unanswered(client: Client, queue: str) -> tuple[RunHandle, str]:
    """A run that was started on a queue, and why a query about it isn't answered."""
    started = await PerdureClient(client).start("teller", "Hi", task_queue=queue)
    run = RunHandle(client, started.id, query_timeouts=(0.4,))
    with pytest.raises(NoAnswer) as failed:
        await run.status()
    return run, str(failed.value)


async def test_query_that_no_worker_answers_names_the_task_queue(client: Client) -> None:
    run, why = await unanswered(client, "nobody polls")
    start = "start one with `perdure worker MODULE:APP --task-queue 'nobody polls'`, the run goes on then"
    assert why == f"no worker polls {place(client, 'nobody polls')}: {start}"
    await client.get_workflow_handle(run.id).terminate(reason="the test is over")
    with pytest.raises(RunFailed, match="Terminated: the test is over"):
        await run.result()
    with pytest.raises(NoAnswer) as failed:
        await run.status()
    assert str(failed.value) == why.removesuffix(", the run goes on then")


async def test_workflow_task_that_fails_is_told_from_a_missing_worker(client: Client) -> None:
    queue = f"broken-{uuid.uuid4().hex[:8]}"
    async with Worker(client, task_queue=queue, workflows=[Broken]):
        run, why = await unanswered(client, queue)
        failure = "WORKFLOW_WORKER_UNHANDLED_FAILURE: RuntimeError: broken on purpose"
        assert why == (
            f"a worker polls {place(client, queue)}, but the run's workflow task fails and is tried again: {failure}"
        )
        looks = run.follow()
        assert (await anext(looks)).why == why
        await client.get_workflow_handle(run.id).terminate()


async def test_worker_that_is_slow_is_told_from_a_missing_one(client: Client) -> None:
    queue = f"busy-{uuid.uuid4().hex[:8]}"
    async with Worker(client, task_queue=queue, workflows=[Busy]):
        _, why = await unanswered(client, queue)
    slow = "has polled in the last minute, but doesn't answer: it is busy, or has just ended"
    assert why == f"a worker of {place(client, queue)} {slow}"
