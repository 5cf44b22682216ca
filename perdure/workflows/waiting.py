"""A call that waits: for a decision of a person, or for a result from outside. No activity is open meanwhile."""

from __future__ import annotations

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import ApprovalTerms, CallOutcome, Fault, Json, PlannedCall, fitting, told
    from perdure.errors import AlreadyDecided, NotPending
    from perdure.workflows import asides, calls, decisions, details, waits
    from perdure.workflows.cancelling import raise_if_cancelled
    from perdure.workflows.deciding import consider
    from perdure.workflows.notices import notify
    from perdure.workflows.state import RunState
    from perdure.workflows.verbs import all_heard, refuse
    from perdure.workflows.waits import Resolution, Waiting


NOT_MADE = "The call was not made: the run was ending."
SUPERSEDED = "The call was not made: nobody decided, and the conversation went on with something else."
SUPERSEDED_OUTSIDE = "No result came before the conversation went on. The call may still be made outside."


async def decided_call(state: RunState, call: PlannedCall, origin: str = "") -> CallOutcome:
    """Wait for what a call needs, then run it, or answer it. Raises `CancelledError` while it waits, unless another
    message supersedes it: that is an answer, too. `origin`: its key as it was planned, where it is another one now."""
    waiting = waits.asked(call, origin or call.key, workflow.now())
    ask(state, waiting)
    handing = asyncio.create_task(_hand_over(state, waiting)) if call.dispatch and waiting.kind != "approval" else None
    return await resumed_call(state, waiting, handing)


def ask(state: RunState, waiting: Waiting) -> None:
    """Begin to wait, and show it."""
    state.waiting[waiting.key] = waiting
    state.decided.pop(waiting.key, None)
    _note_asked(state, waiting)
    details.waits(state)
    notify(state, waiting, "asked", waiting.asked_at)


async def resumed_call(state: RunState, waiting: Waiting, handing: asyncio.Task[None] | None = None) -> CallOutcome:
    """Go on waiting for a call that has been asked for."""
    await decided(state, waiting, handing)
    outcome = await _outcome(state, waiting)
    return outcome.model_copy(update={"key": waiting.origin})  # an edit gave it another


async def _outcome(state: RunState, waiting: Waiting) -> CallOutcome:
    call, resolution = waiting.call, waiting.resolution or Resolution("expired")
    match resolution.outcome:
        case "approved":
            return await _run(state, waiting)
        case "denied":
            return told(call, "denied", resolution.reason or "The call was denied.")
        case "expired":
            return told(call, "expired", decisions.expired_text(waiting), _expiry_fault(waiting))
        case "failed":
            return told(call, "failed", resolution.reason)
        case "completed":
            return told(call, "returned", "").model_copy(update={"result": [resolution.result]})
        case "cancelled":
            return told(call, "cancelled", NOT_MADE)
        case "superseded" if waiting.kind == "approval":
            return told(call, "denied", SUPERSEDED)
        case "superseded" | "raised":
            return told(call, "cancelled", SUPERSEDED_OUTSIDE)


async def _run(state: RunState, waiting: Waiting) -> CallOutcome:
    call = waiting.call
    if call.after != "run":
        return await decided_call(state, call.model_copy(update={"action": call.after}), waiting.origin)
    async with state.slots:
        if state.failing:
            return told(call, "cancelled", NOT_MADE)
        began = workflow.now()
        outcome = await calls.tool_call(state, call, approved_by=waiting.votes)
    state.note("ran", call, workflow.now(), began=began.isoformat(), outcome=outcome.kind)
    if outcome.kind == "needs_approval":
        return told(call, "failed", "The tool asked for approval again, although it was approved.")
    if outcome.kind == "deferred":
        return await decided_call(state, asked_by_tool(call, outcome), waiting.origin)
    return outcome


def _expiry_fault(waiting: Waiting) -> Fault | None:
    """What ends the run, where its policy says that an expiry does."""
    call = waiting.call
    if waiting.kind == "approval" and waiting.terms.on_expiry == "fail":
        return Fault(type="ApprovalExpired", message=f"nobody decided call {call.key} of {call.tool!r} in time")
    if waiting.kind != "approval" and call.options.on_timeout == "fail":
        return Fault(type="ToolTimeout", message=f"no result of call {call.key} of {call.tool!r} came in time")
    return None


async def decided(state: RunState, waiting: Waiting, handing: asyncio.Task[None] | None = None) -> None:
    """Wait until it has its resolution. Raises `CancelledError` meanwhile, unless another message supersedes it."""
    try:
        while waiting.resolution is None:
            await _next(state, waiting)
    except asyncio.CancelledError:
        if state.stopping != "interrupted":
            await _leave(state, waiting, "cancelled", handing)
            raise
        waiting.resolution = Resolution("superseded")
    await _leave(state, waiting, waiting.resolution.outcome, handing)


def _note_asked(state: RunState, waiting: Waiting) -> None:
    state.note(
        "asked",
        waiting.call,
        waiting.asked_at,
        kind=waiting.kind,
        rule=waiting.terms.rule,
        args=fitting(waiting.call.args),
        approvers=waiting.terms.approvers,
        quorum=waiting.terms.quorum if waiting.terms.quorum > 1 else None,
        expires_at=waiting.expires_at.isoformat() if waiting.expires_at else None,
    )


async def _leave(state: RunState, waiting: Waiting, how: str, handing: asyncio.Task[None] | None) -> None:
    """It waits no longer. Whoever is still in line is told so."""
    now, resolution = workflow.now(), waiting.resolution
    del state.waiting[waiting.key]
    state.decided[waiting.key] = how
    if handing is not None:
        handing.cancel()
    if how in ("expired", "cancelled", "superseded"):
        state.note(how, waiting.call, now, level=waiting.level)
    late = AlreadyDecided(f"call {waiting.key!r} is already decided: {how}")
    for arrival in waiting.arrived:
        refuse(state, arrival, NotPending("the run is ending") if how == "cancelled" else late)
    state.leaving += 1  # what was decided isn't done yet: a run that continued now would ask again
    try:
        await all_heard(list(waiting.arrived))
    finally:
        state.leaving -= 1
    who = Resolution("expired") if resolution is None else resolution
    notify(state, waiting, "decided", now, outcome=how, by=who.by, verified=who.verified, reason=who.reason)
    details.waits(state)


async def _next(state: RunState, waiting: Waiting) -> None:
    """Wait for what comes next, and deal with it.

    What a worker has received by the expiry counts, however long others take to be verified before it. Without a worker
    at the expiry, what was sent in time can't be told from what wasn't: it is too late.
    """
    moment = waiting.next_moment
    came = await _something(state, waiting, None if moment is None else (moment - workflow.now()).total_seconds())
    raise_if_cancelled()
    now, expires = workflow.now(), waiting.expires_at
    if not came and moment is not None:
        now = max(now, moment)  # its timer has fired, whatever the clock of this task says
    if state.failing and waiting.resolution is None:
        waiting.resolution = Resolution("cancelled")
    if waiting.resolution is not None:
        return
    if waiting.arrived and (expires is None or waiting.arrived[0].at <= expires):
        await consider(state, waiting, waiting.arrived.popleft())
        details.waits(state)
    elif expires is not None and expires <= now:
        _expire(state, waiting)
    elif waiting.reminders and waiting.reminders[0] <= now:
        waiting.reminders = [moment for moment in waiting.reminders if moment > now]
        state.note("reminded", waiting.call, now)
        notify(state, waiting, "reminded", now)


async def _something(state: RunState, waiting: Waiting, seconds: float | None) -> bool:
    """Whether anything came before the time was over."""

    def came() -> bool:
        return bool(waiting.arrived) or waiting.resolution is not None or state.failing

    if came() or (seconds is not None and seconds <= 0):
        return came()
    waiting.parked = True
    try:
        await workflow.wait_condition(came, timeout=seconds)
    except TimeoutError:
        return came()
    finally:
        waiting.parked = False
    return True


def _expire(state: RunState, waiting: Waiting) -> None:
    now = workflow.now()
    if not waits.escalated(waiting, now):
        waiting.resolution = Resolution("expired")
        return
    state.note("escalated", waiting.call, now, approvers=waiting.terms.approvers, level=waiting.level)
    notify(state, waiting, "escalated", now)
    details.waits(state)


async def _hand_over(state: RunState, waiting: Waiting) -> None:
    """Hand the call to the outside. Where that can't be done, it fails instead of waiting for nobody."""
    try:
        problem = await asides.dispatch(state, waiting)
    except asyncio.CancelledError:
        return  # its result came first, or nobody waits any more
    state.note("dispatched" if not problem else "not dispatched", waiting.call, workflow.now(), reason=problem)
    if problem and waiting.resolution is None:
        text = "The call could not be handed over to who makes it. It may have been made: check before you repeat it."
        waiting.resolution = Resolution("failed", text)


def asked_by_tool(call: PlannedCall, outcome: CallOutcome) -> PlannedCall:
    """The call of a tool that itself asked for approval, or for a result from outside. Its policy's terms apply."""
    asks = outcome.kind == "needs_approval"
    metadata = dict(outcome.metadata)
    update: Json = {"action": "approve" if asks else outcome.action or "external", "metadata": metadata}
    if (moved := outcome.moved) is not None:
        update |= {"options": moved.options, "wait": moved.wait, "dispatch": moved.dispatch, "checked": moved.checked}
    if not asks and isinstance(metadata.get("result_schema"), dict):
        update |= {"checked": True, "result_schema": metadata.pop("result_schema")}
    if call.approval is None:
        update["approval"] = ApprovalTerms(rule="asked by the tool")
    return call.model_copy(update=update)
