"""Calls of a run that wait because nobody serves their task queue, and child workflows whose own tasks fail.

Everything is asked of the server: what the run waits for, which queue that is on, and whether somebody polls it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState, PendingNexusOperationState
from temporalio.api.operatorservice.v1 import ListNexusEndpointsRequest
from temporalio.api.workflow.v1 import PendingActivityInfo, PendingChildExecutionInfo, PendingNexusOperationInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse
from temporalio.client import Client
from temporalio.service import RPCError

from perdure.client.pollers import ACTIVITIES, NEXUS, WORKFLOWS, Kind, is_served
from perdure.client.unanswered import named, task_failure, to_start
from perdure.contracts import TOOL_ACTIVITY_PREFIX, WORKFLOW_TYPE

AFTER = 3.0
"""Seconds that something waits before it is asked why."""
EVERY = 10.0
"""Seconds between two times at which that is asked."""
MAX_DEPTH = 5
"""How far down runs that other runs have started are looked at."""
MAX_CHILDREN = 20
"""Child workflows of one workflow that are looked at."""
TIMEOUT = timedelta(seconds=10)
THEIRS = "start the worker that serves it"
SCHEDULED = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
BEGUN = PendingNexusOperationState.PENDING_NEXUS_OPERATION_STATE_STARTED

Described = DescribeWorkflowExecutionResponse


class Unserved:
    """What nobody serves of a run that is followed. Asked rarely, and only while something has waited for a while."""

    def __init__(self, client: Client) -> None:
        self.lines: list[str] = []
        self._client = client
        self._since: dict[str, float] = {}
        self._asked = -EVERY

    async def look(self, described: Described) -> None:
        """Ask, if it is time to. Faults of the server change nothing: who follows is told of them in another way."""
        now = time.monotonic()
        self._since = {id: self._since.get(id, now) for id in _waiting(described)}
        if not self._since:
            self.lines = []
        elif min(self._since.values()) + AFTER <= now and self._asked + EVERY <= now:
            self._asked = now
            with suppress(RPCError):  # not everybody may ask
                self.lines = await unserved(self._client, described)


async def unserved(client: Client, described: Described) -> list[str]:
    """What waits that nobody serves, a line each: what it is and what to do. Raises `RPCError`."""
    looking = _Looking(client)
    return list(dict.fromkeys([line async for line in looking.workflow(described, 0)]))


def _waiting(described: Described) -> list[str]:
    """Names of all that may wait for a worker."""
    run = described.workflow_execution_info.execution.run_id
    activities = [f"{run}/{one.activity_id}" for one in described.pending_activities if one.state == SCHEDULED]
    operations = [f"{run}/{one.scheduled_event_id}" for one in described.pending_nexus_operations if one.state != BEGUN]
    return [*activities, *operations, *(child.run_id for child in described.pending_children)]


class _Looking:
    """One look, which asks about each queue once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._served: dict[tuple[str, Kind], bool] = {}

    async def workflow(self, described: Described, depth: int) -> AsyncIterator[str]:
        """What waits in a workflow, and in those that it has started."""
        own = described.workflow_execution_info.task_queue
        for activity in described.pending_activities:
            if activity.state == SCHEDULED and (line := await self._activity(activity, own)):
                yield line
        for operation in described.pending_nexus_operations:
            if operation.state != BEGUN and (line := await self._operation(operation)):
                yield line
        for child in described.pending_children[:MAX_CHILDREN] if depth < MAX_DEPTH else ():
            async for line in self._child(child, depth):
                yield line

    async def _activity(self, pending: PendingActivityInfo, own: str) -> str:
        queue, type = pending.activity_options.task_queue.name, pending.activity_type.name
        if not queue or queue.startswith(f"{own}@") or await self._is_served(queue, ACTIVITIES):
            return ""  # a call for the worker with a session is given to any other by itself
        if queue == own:
            return self._nobody(queue, f"the activity {type!r}", to_start(queue))
        if type.startswith(TOOL_ACTIVITY_PREFIX):
            tool = type.removeprefix(TOOL_ACTIVITY_PREFIX)
            return self._nobody(queue, f"a call of {tool!r}", to_start(queue, option="--only"))
        return self._nobody(queue, f"the activity {type!r}")

    async def _operation(self, pending: PendingNexusOperationInfo) -> str:
        request = ListNexusEndpointsRequest(name=pending.endpoint)
        answer = await self._client.operator_service.list_nexus_endpoints(request, timeout=TIMEOUT)
        for endpoint in answer.endpoints:
            worker = endpoint.spec.target.worker
            here = worker.namespace == self._client.namespace
            if here and worker.task_queue and not await self._is_served(worker.task_queue, NEXUS):
                what = f"the operation {pending.operation!r} of the Nexus endpoint {pending.endpoint!r}"
                return self._nobody(worker.task_queue, what)
        return ""

    async def _child(self, child: PendingChildExecutionInfo, depth: int) -> AsyncIterator[str]:
        execution = WorkflowExecution(workflow_id=child.workflow_id, run_id=child.run_id)
        request = DescribeWorkflowExecutionRequest(namespace=self._client.namespace, execution=execution)
        described = await self._client.workflow_service.describe_workflow_execution(request, timeout=TIMEOUT)
        if described.HasField("pending_workflow_task") and (line := await self._task(child, described)):
            yield line
        if child.workflow_type_name == WORKFLOW_TYPE:  # what others wait for is theirs
            async for line in self.workflow(described, depth + 1):
                yield line

    async def _task(self, child: PendingChildExecutionInfo, described: Described) -> str:
        """Why a child workflow doesn't go on."""
        queue, agent = described.workflow_execution_info.task_queue, child.workflow_type_name == WORKFLOW_TYPE
        what = f"the run {child.workflow_id}" if agent else f"the workflow {child.workflow_type_name!r}"
        if not await self._is_served(queue, WORKFLOWS):
            return self._nobody(queue, what, to_start(queue) if agent else THEIRS)
        failure = await task_failure(self._client, described)
        where = f"a worker polls {named(self._client, queue)}, but"
        return f"{where} the workflow task of {what} fails and is tried again: {failure}" if failure else ""

    async def _is_served(self, queue: str, kind: Kind) -> bool:
        if (queue, kind) not in self._served:
            self._served[queue, kind] = await is_served(self._client, queue, kind)
        return self._served[queue, kind]

    def _nobody(self, queue: str, what: str, start: str = THEIRS) -> str:
        return f"no worker polls {named(self._client, queue)}, where {what} waits: {start}"
