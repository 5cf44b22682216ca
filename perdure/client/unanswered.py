"""Why nobody answers a query about a run: no worker polls, its workflow task fails, or a worker is slow."""

from __future__ import annotations

import shlex

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent, WorkflowTaskFailedEventAttributes
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

from perdure.client.payloads import NOT_CONFIGURED
from perdure.client.pollers import WORKFLOWS, is_served
from perdure.contracts import TASK_QUEUE, cut

EVENTS = 20
"""How many of the latest events of a history are looked through for what became of the last workflow task."""
MAX_CAUSE = 500
"""Characters of a failure that are shown."""


async def why_unanswered(client: Client, described: DescribeWorkflowExecutionResponse) -> str:
    """What is the matter and what to do, in one line. The same words as long as nothing changes; asks no worker."""
    info = described.workflow_execution_info
    running = info.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING
    queue = named(client, info.task_queue)
    try:
        if not await is_served(client, info.task_queue, WORKFLOWS):
            return f"no worker polls {queue}: {to_start(info.task_queue)}{', the run goes on then' if running else ''}"
        failure = await task_failure(client, described)
    except RPCError as error:  # not everybody may ask
        return f"no worker of {queue} answers, and why can't be found out: {error}"
    if failure:
        return f"a worker polls {queue}, but the run's workflow task fails and is tried again: {failure}"
    return f"a worker of {queue} has polled in the last minute, but doesn't answer: it is busy, or has just ended"


def named(client: Client, queue: str) -> str:
    """A task queue, and where it is."""
    address = client.service_client.config.target_host
    return f"task queue {queue!r} at {address} (namespace {client.namespace!r})"


def to_start(queue: str, *, option: str = "--task-queue") -> str:
    """How to start a worker of an App for the queue."""
    options = "" if queue == TASK_QUEUE else f" {option} {shlex.quote(queue)}"
    return f"start one with `perdure worker MODULE:APP{options}`"


async def task_failure(client: Client, described: DescribeWorkflowExecutionResponse) -> str:
    """What the workflow task that is tried again failed with; empty where it is its first attempt, or didn't fail.

    Raises `RPCError`.
    """
    failure = await _failure(client, described) if described.pending_workflow_task.attempt > 1 else None
    hint = (
        ". Start the worker with the PERDURE_PAYLOADS of the run's client" if NOT_CONFIGURED in (failure or "") else ""
    )
    return f"{failure}{hint}" if failure else ""


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
