"""Resetting a run, as an operator would."""

from __future__ import annotations

import uuid

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client

from tests.harness import Handle


async def reset(client: Client, handle: Handle, task: int) -> Handle:
    """Reset a run to the workflow task that ended with that event."""
    answer = await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=handle.id, run_id=handle.first_execution_run_id or ""),
            reason="test",
            workflow_task_finish_event_id=task,
            request_id=uuid.uuid4().hex,
        )
    )
    return client.get_workflow_handle(handle.id, run_id=answer.run_id)
