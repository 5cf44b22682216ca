"""Tells people what waits: never in the way of the run, and never silently lost."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Literal

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Json, Notification, args_digest, fitting
    from perdure.workflows import asides
    from perdure.workflows.state import RunState
    from perdure.workflows.waits import Waiting

Event = Literal["asked", "reminded", "escalated", "decided"]


def notify(state: RunState, waiting: Waiting, event: Event, at: datetime, **decided: str | bool) -> None:
    """Start telling people, where the app has a notifier. Failures are in `unsent` of the query `status`."""
    if state.plan is None or not state.plan.notifies:
        return
    notification = _notification(state, waiting, event, at, decided)
    state.notices = [task for task in state.notices if not task.done()]
    state.notices.append(asyncio.create_task(_tell(state, notification)))


async def _tell(state: RunState, notification: Notification) -> None:
    try:
        problem = await asides.notify(state, notification)
    except asyncio.CancelledError:
        problem = "the run was ending"
    if problem:
        state.keep_unsent({"call": notification.call, "event": notification.event, "reason": problem})


def _notification(
    state: RunState, waiting: Waiting, event: Event, at: datetime, decided: dict[str, str | bool]
) -> Notification:
    info, call, request = workflow.info(), waiting.call, state.request
    state.told += 1
    fields: Json = {
        "id": args_digest([info.workflow_id, info.run_id, state.told, event, waiting.key])[:32],
        "event": event,
        "at": at.isoformat(),
        "workflow_id": info.workflow_id,
        "run_id": info.first_execution_run_id,
        "agent": state.agent,
        "started_by": request.by if request else "",
        "run_metadata": fitting(request.metadata) if request else {},
        "asked_at": waiting.asked_at.isoformat(),
        "expires_at": waiting.expires_at.isoformat() if waiting.expires_at else None,
        "call": waiting.key,
        "kind": waiting.kind,
        "tool": call.tool,
        "tool_call_id": call.tool_call_id,
        "args": fitting(call.args),
        "metadata": fitting(call.metadata),
        "approvers": waiting.terms.approvers,
        "needed": waiting.needed if waiting.kind == "approval" else 0,
        "votes": waiting.votes,
    }
    return Notification.model_validate(fields | decided)
