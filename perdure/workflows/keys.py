"""What a call is called outside the run: the key that makes repeating it harmless, and the id of its child workflow."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import PlannedCall, args_digest

MAX_ID = 1000
"""Bytes of a workflow id. A server refuses longer ones by failing the workflow task, for ever."""


def idempotency_key(call: PlannedCall) -> str:
    """The same for every attempt of a call, also after a workflow reset and a continue-as-new; unique to the call."""
    info = workflow.info()
    parts = [info.workflow_id, info.first_execution_run_id, call.key, call.tool, call.args]
    return args_digest(parts)[:32]


def child_id(call: PlannedCall) -> str:
    """The workflow id of the child that runs a call: known beforehand, the same after a reset, and no other call's,
    also where a later run has the workflow id of this one."""
    key = idempotency_key(call)
    name = f"{workflow.info().workflow_id}/{call.key}-{key[:8]}"
    return name if len(name.encode()) <= MAX_ID else key
