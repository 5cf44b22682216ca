"""How a run is asked: queries that a worker answers, and what the server knows of it. Neither writes history."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, timedelta
from typing import TypeVar, cast

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflow.v1 import PendingActivityInfo, WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse
from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from perdure.client.errors import ClientError, NoAnswer, missing
from perdure.client.payloads import readable
from perdure.client.unanswered import why_unanswered
from perdure.client.views import LiveText, RunSummary
from perdure.contracts import Json, TranscriptPage, cut

LOST = (RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED, RPCStatusCode.UNAVAILABLE)
"""What a query that nobody answered in time comes back with."""
DESCRIBE_TIMEOUT = timedelta(seconds=10)
"""For one look at what the server knows: a connection that has gone silent must not hold up who follows a run."""
LASTING = (
    RPCStatusCode.NOT_FOUND,
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.UNAUTHENTICATED,
    RPCStatusCode.INVALID_ARGUMENT,
    RPCStatusCode.UNIMPLEMENTED,
)
"""Faults that another try doesn't mend."""

MAX_FAILURE = 300
"""Characters of why an activity failed."""

T = TypeVar("T")


class Asking:
    """Asks one run, by its workflow id, also where it continues as new."""

    def __init__(self, client: Client, id: str, timeouts: Sequence[float]) -> None:
        self.client = client
        self.id = id
        self.timeouts = timeouts
        """Seconds for each try of a query."""

    async def query(
        self, name: str, argument: Json | None, result_type: type[T], timeouts: Sequence[float] | None = None
    ) -> T:
        """The answer of a worker. Raises `NoAnswer`, `NoSuchRun`, and `ClientError` for what the run refuses."""
        handle = self.client.get_workflow_handle(self.id)
        for seconds in timeouts or self.timeouts:
            try:
                args = [] if argument is None else [argument]
                timeout = timedelta(seconds=seconds)
                with readable():
                    return await handle.query(name, args=args, result_type=result_type, rpc_timeout=timeout)
            except WorkflowQueryFailedError as error:
                raise ClientError(f"run {self.id!r} doesn't answer the query {name!r}: {error}") from error
            except RPCError as error:
                if error.status == RPCStatusCode.FAILED_PRECONDITION:
                    await asyncio.sleep(0.1)  # answered at once: no workflow task has been done yet, or no worker
                elif error.status not in LOST:
                    raise missing(self.id, error) from error
        raise NoAnswer(await why_unanswered(self.client, await self.describe()))

    async def page(self, start: int, timeouts: Sequence[float] | None = None) -> TranscriptPage:
        """Entries of the transcript from `start` on, as many as one answer holds."""
        return await self.query("transcript", {"start": start}, TranscriptPage, timeouts)

    async def describe(self, *, retry: bool = True) -> DescribeWorkflowExecutionResponse:
        """What the server knows. Temporal's own `describe()` fails on a paused workflow, so this asks the service."""
        request = DescribeWorkflowExecutionRequest(
            namespace=self.client.namespace, execution=WorkflowExecution(workflow_id=self.id)
        )
        service = self.client.workflow_service
        try:
            return await service.describe_workflow_execution(request, retry=retry, timeout=DESCRIBE_TIMEOUT)
        except RPCError as error:
            raise missing(self.id, error) from error

    async def live(self, described: DescribeWorkflowExecutionResponse) -> list[LiveText]:
        """What the activities said last, each in its latest attempt: what an earlier attempt said is left out."""
        run = described.workflow_execution_info.execution.run_id
        return [await self._said(run, pending) for pending in described.pending_activities]

    async def repeated(self, described: DescribeWorkflowExecutionResponse) -> str:
        """Of an activity that failed and is tried again: its name, and why it failed. Empty where there is none."""
        for pending in described.pending_activities:
            if pending.attempt > 1 and pending.HasField("last_failure"):
                error = await self.client.data_converter.decode_failure(pending.last_failure)
                text = " ".join(cut(str(error), MAX_FAILURE).split())
                return f"{pending.activity_type.name} is tried again: {text}"
        return ""

    async def _said(self, run: str, pending: PendingActivityInfo) -> LiveText:
        said: Json = {}
        if pending.heartbeat_details.payloads:
            (beat, *_) = await self.client.data_converter.decode(pending.heartbeat_details.payloads)
            said = cast("Json", beat) if isinstance(beat, dict) else {}
        attempt = max(pending.attempt, 1)
        text = str(said.get("text", "")) if said.get("attempt", 1) == attempt else ""
        return LiveText(pending.activity_type.name, attempt, text, f"{run}/{pending.activity_id}")


def is_open(info: WorkflowExecutionInfo) -> bool:
    """Whether the run goes on: it runs, is paused, or continues as new just now."""
    return info.status in (
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING,
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_PAUSED,
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
    )


def passes(error: RPCError) -> bool:
    """Whether another try may succeed: the server or the network is away, or has too much to do."""
    return error.status not in LASTING


def summary(info: WorkflowExecutionInfo) -> RunSummary:
    """Temporal's own description of a run, in short."""
    agent = info.search_attributes.indexed_fields.get("AgentName")
    status = WorkflowExecutionStatus.Name(info.status).removeprefix("WORKFLOW_EXECUTION_STATUS_").lower()
    return RunSummary(
        id=info.execution.workflow_id,
        agent=str(json.loads(agent.data)) if agent is not None else "",
        status=status,
        started=info.start_time.ToDatetime(UTC),
        closed=info.close_time.ToDatetime(UTC) if info.HasField("close_time") else None,
        task_queue=info.task_queue,
    )
