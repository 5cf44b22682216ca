"""Why nobody answers a query about a run: no worker polls, its workflow task fails, or a worker is slow."""

from __future__ import annotations

import shlex
import time

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import TaskQueueType, WorkflowExecutionStatus, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent, WorkflowTaskFailedEventAttributes
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

from perdure.client.payloads import NOT_CONFIGURED
from perdure.contracts import TASK_QUEUE, cut

POLLER_AGE = 75.0
"""Seconds since the last poll after which a worker is gone. A poll lasts up to a minute, and the server names pollers
for five minutes."""
EVENTS = 20
"""How many of the latest events of a history are looked through for what became of the last workflow task."""
MAX_CAUSE = 500
"""Characters of a failure that are shown."""


async def why_unanswered(client: Client, described: DescribeWorkflowExecutionResponse) -> str:
    """What is the matter and what to do, in one line. The same words as long as nothing changes; asks no worker."""
    info = described.workflow_execution_info
    running = info.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING
    address = client.service_client.config.target_host
    queue = f"task queue {info.task_queue!r} at {address} (namespace {client.namespace!r})"
    try:
        if not await _polled(client, info.task_queue):
            option = "" if info.task_queue == TASK_QUEUE else f" --task-queue {shlex.quote(info.task_queue)}"
            then = ", the run goes on then" if running else ""
            return f"no worker polls {queue}: start one with `perdure worker MODULE:APP{option}`{then}"
        failure = await _failure(client, described) if described.pending_workflow_task.attempt > 1 else None
    except RPCError as error:  # not everybody may ask
        return f"no worker of {queue} answers, and why can't be found out: {error}"
    if failure:
        hint = ". Start the worker with the PERDURE_PAYLOADS of the run's client" if NOT_CONFIGURED in failure else ""
        return f"a worker polls {queue}, but the run's workflow task fails and is tried again: {failure}{hint}"
    return f"a worker of {queue} has polled in the last minute, but doesn't answer: it is busy, or has just ended"


async def _polled(client: Client, queue: str) -> bool:
    """Whether a worker takes workflow tasks of the queue."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    answer = await client.workflow_service.describe_task_queue(request, retry=True)
    oldest = time.time() - POLLER_AGE
    return any(poller.last_access_time.ToSeconds() > oldest for poller in answer.pollers)


async def _failure(client: Client, described: DescribeWorkflowExecutionResponse) -> str | None:
    """What the run's last workflow task failed with; `None` where it didn't fail. Later attempts aren't in history."""
    execution = described.workflow_execution_info.execution
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(workflow_id=execution.workflow_id, run_id=execution.run_id),
        maximum_page_size=EVENTS,
    )
    answer = await client.workflow_service.get_workflow_execution_history_reverse(request, retry=True)
    for event in answer.history.events:
        if _ends_workflow_task(event):
            failed = event.HasField("workflow_task_failed_event_attributes")
            return await _said(client, event.workflow_task_failed_event_attributes) if failed else None
    return None


def _ends_workflow_task(event: HistoryEvent) -> bool:
    kinds = ("failed", "timed_out", "completed")
    return event.WhichOneof("attributes") in [f"workflow_task_{kind}_event_attributes" for kind in kinds]


async def _said(client: Client, event: WorkflowTaskFailedEventAttributes) -> str:
    cause = WorkflowTaskFailedCause.Name(event.cause).removeprefix("WORKFLOW_TASK_FAILED_CAUSE_")
    said = str(await client.data_converter.decode_failure(event.failure)) if event.HasField("failure") else ""
    return cut(f"{cause}: {said}" if said else cause, MAX_CAUSE)
