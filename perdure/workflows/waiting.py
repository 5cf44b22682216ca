"""A call that waits: for a decision of a person, or for a result from outside. No activity is open meanwhile."""

from __future__ import annotations

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import ApprovalTerms, CallOutcome, Fault, PlannedCall
    from perdure.workflows import decisions, details, requests
    from perdure.workflows.decisions import Resolution, Waiting
    from perdure.workflows.effects import told
    from perdure.workflows.state import RunState


async def decided_call(state: RunState, call: PlannedCall) -> CallOutcome:
    """Wait for what a call needs, then run it, or answer it. Raises `CancelledError` while it waits."""
    resolution, waiting = await _resolution(state, call)
    now = workflow.now()
    match resolution.outcome:
        case "approved":
            state.decided[call.key] = "approved"
            outcome = await requests.tool_call(state, resolution.call or call, approved=True)
            state.note("ran", call, workflow.now(), outcome=outcome.kind)
            if outcome.kind == "needs_approval":
                return told(call, "failed", "The tool asked for approval again, although it was approved.")
            return await decided_call(state, asked_by_tool(call, outcome)) if outcome.kind == "deferred" else outcome
        case "denied":
            return told(call, "denied", resolution.reason or "The call was denied.")
        case "expired":
            error = Fault(type="ApprovalExpired", message=f"nobody decided call {call.key} of {call.tool!r} in time")
            fails = waiting.terms.on_expiry == "fail"
            state.note("expired", call, now, level=waiting.level)
            return told(call, "expired", decisions.expired_text(waiting), error if fails else None)
        case "failed":
            return told(call, "failed", resolution.reason)
        case "completed":
            return told(call, "returned", "").model_copy(update={"content": resolution.result})


async def _resolution(state: RunState, call: PlannedCall) -> tuple[Resolution, Waiting]:
    waiting = decisions.asked(call, workflow.now())
    state.waiting[call.key] = waiting
    state.decided.pop(call.key, None)
    state.note("asked", call, waiting.asked_at, kind=waiting.kind, args=call.args, approvers=waiting.terms.approvers)
    details.waits(state)
    try:
        while waiting.resolution is None:
            await _decided_or_expired(state, waiting)
    except asyncio.CancelledError:
        _leave(state, waiting, "cancelled")
        raise
    _leave(state, waiting, waiting.resolution.outcome)
    return waiting.resolution, waiting


def _leave(state: RunState, waiting: Waiting, how: str) -> None:
    del state.waiting[waiting.call.key]
    state.decided.setdefault(waiting.call.key, how)
    details.show(state)


async def _decided_or_expired(state: RunState, waiting: Waiting) -> None:
    """Wait until there is a resolution; at the expiry, escalate or resolve as expired. A decision wins a tie."""
    left = None if waiting.expires_at is None else waiting.expires_at - workflow.now()
    try:
        await workflow.wait_condition(lambda: waiting.resolution is not None, timeout=left)
    except TimeoutError:
        if waiting.resolution is not None:
            return
        if decisions.escalated(waiting, workflow.now()):
            state.note("escalated", waiting.call, workflow.now(), approvers=waiting.terms.approvers)
            details.waits(state)
        else:
            waiting.resolution = Resolution("expired")


def asked_by_tool(call: PlannedCall, outcome: CallOutcome) -> PlannedCall:
    """The call of a tool that itself asked for approval, or for a result from outside."""
    terms = ApprovalTerms(rule="asked by the tool")
    action = "approve" if outcome.kind == "needs_approval" else outcome.metadata.get("action", "external")
    metadata = {name: value for name, value in outcome.metadata.items() if name != "action"}
    update = {"action": action, "approval": terms if action == "approve" else None, "metadata": metadata}
    return call.model_copy(update=update)
