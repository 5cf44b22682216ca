"""Child workflows that run a call: how they are started, and what becomes of them with their parent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy, WorkflowIDReusePolicy

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import PlannedCall
    from perdure.workflows.begun import ended
    from perdure.workflows.keys import child_id
    from perdure.workflows.state import RunState

GRACE = 10.0
"""Seconds that a cancelled child has at least: it may have activities of its own to wait for. It goes on after them."""


async def run_child(
    state: RunState,
    call: PlannedCall,
    workflow_type: str,
    args: list[Any],
    *,
    task_queue: str | None = None,
    execution_timeout: float | None = None,
    retries: RetryPolicy | None = None,
    reuse: WorkflowIDReusePolicy | None = None,
    grace: float = GRACE,
) -> RawValue:
    """Run the child workflow of a call and return its result. Raises `GivenUp`, and `FailureError` where it fails.

    Its id is `child_id(call)`, so only a reset of the run meets one that is there already: an `unsafe` call then raises
    `WorkflowAlreadyStartedError`, the others end the old child and begin anew, unless `reuse` says otherwise.
    Cancelling the run or the turn cancels it and waits for its end; if the run ends in another way, it is cancelled too
    and ends by itself. The policy's `timeout` isn't applied here.
    """

    async def work() -> Any:
        handle = await workflow.start_child_workflow(
            workflow_type,
            args=args,
            id=child_id(call),
            task_queue=call.options.task_queue or task_queue,
            result_type=RawValue,
            cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
            id_reuse_policy=_reuse(call) if reuse is None else reuse,
            execution_timeout=None if execution_timeout is None else timedelta(seconds=execution_timeout),
            retry_policy=retries,
            static_summary=call.key,
        )
        return await handle

    return await ended(state, work(), max(call.options.grace, grace))


def _reuse(call: PlannedCall) -> WorkflowIDReusePolicy:
    if call.options.effect == "unsafe":
        return WorkflowIDReusePolicy.REJECT_DUPLICATE
    return WorkflowIDReusePolicy.TERMINATE_IF_RUNNING
