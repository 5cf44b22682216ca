"""Whether anybody serves a task queue: by who polls it, and by what workers tell the server of themselves."""

from __future__ import annotations

import time
from datetime import timedelta

from temporalio.api.enums.v1 import TaskQueueType, WorkerStatus
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.worker.v1 import WorkerHeartbeat
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, ListWorkersRequest
from temporalio.client import Client
from temporalio.service import RPCError

from perdure.client.filters import quoted

Kind = TaskQueueType.ValueType
WORKFLOWS = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
ACTIVITIES = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
NEXUS = TaskQueueType.TASK_QUEUE_TYPE_NEXUS
POLLER_AGE = 75.0
"""Seconds since the last poll after which a worker is gone. A poll lasts up to a minute, and the server names pollers
for five minutes."""
HEARTBEAT_AGE = 135.0
"""Seconds after which a worker that tells of itself once a minute, as SDKs do, is gone."""
TIMEOUT = timedelta(seconds=10)
MAX_WORKERS = 100


async def is_served(client: Client, queue: str, kind: Kind) -> bool:
    """Whether a worker takes tasks of that kind from the queue. Raises `RPCError` where one may not ask.

    A worker that was stopped isn't counted from the moment on at which it says so; one that was killed after
    `POLLER_AGE`. A worker that has no place free polls nothing, but says that it works.
    """
    request = DescribeTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
    )
    answer = await client.workflow_service.describe_task_queue(request, retry=True, timeout=TIMEOUT)
    polls = {one.identity: one.last_access_time.ToMilliseconds() / 1000 for one in answer.pollers}
    now = time.time()
    fresh = {identity: at for identity, at in polls.items() if at > now - POLLER_AGE}
    workers = await _workers(client, queue)
    if not fresh:
        return any(_works(worker, kind, now) for worker in workers)
    stopped = _stopped(workers)
    return any(at > stopped.get(identity, 0) for identity, at in fresh.items())


async def _workers(client: Client, queue: str) -> list[WorkerHeartbeat]:
    """What workers of the queue have told of themselves; of many SDKs and servers: nothing."""
    query = f"TaskQueue = {quoted(queue)}"
    request = ListWorkersRequest(namespace=client.namespace, page_size=MAX_WORKERS, query=query)
    try:
        answer = await client.workflow_service.list_workers(request, timeout=TIMEOUT)
    except RPCError:
        return []
    return [info.worker_heartbeat for info in answer.workers_info]


def _stopped(workers: list[WorkerHeartbeat]) -> dict[str, float]:
    """When the workers of an identity stopped polling."""
    found: dict[str, float] = {}
    for worker in workers:
        if worker.status in (WorkerStatus.WORKER_STATUS_SHUTTING_DOWN, WorkerStatus.WORKER_STATUS_SHUTDOWN):
            at = worker.heartbeat_time.ToMilliseconds() / 1000
            found[worker.worker_identity] = max(at, found.get(worker.worker_identity, 0))
    running = {one.worker_identity for one in workers if one.status == WorkerStatus.WORKER_STATUS_RUNNING}
    return {identity: at for identity, at in found.items() if identity not in running}


def _works(worker: WorkerHeartbeat, kind: Kind, now: float) -> bool:
    """Whether a worker that doesn't poll has all its places taken."""
    slots = {
        WORKFLOWS: worker.workflow_task_slots_info,
        ACTIVITIES: worker.activity_task_slots_info,
        NEXUS: worker.nexus_task_slots_info,
    }
    alive = worker.heartbeat_time.ToSeconds() > now - HEARTBEAT_AGE
    runs = worker.status == WorkerStatus.WORKER_STATUS_RUNNING
    return runs and alive and slots[kind].current_used_slots > 0
