"""What a lost or failed tool activity means for the call, by its effect class. Pure functions; design §7."""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    FailureError,
    TimeoutError,
    TimeoutType,
    is_cancelled_exception,
)

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import MAY_HAVE_RUN, CallOutcome, Fault, OutcomeKind, PlannedCall, told


def outcome_of_failure(call: PlannedCall, failure: FailureError) -> CallOutcome:
    """The outcome of a call whose activity failed instead of answering."""
    cause = failure.cause if isinstance(failure, ActivityError) else failure
    if is_cancelled_exception(failure) or isinstance(cause, CancelledError):
        begun = not isinstance(failure, ActivityError) or failure.started_event_id != 0
        return stopped(call, begun)
    if isinstance(cause, TimeoutError):
        return timed_out(call, cause.type)
    if isinstance(cause, ApplicationError) and cause.type == "NotRun":
        return told(call, "failed", str(cause.message))
    return lost(call)


def lost(call: PlannedCall) -> CallOutcome:
    """The outcome of a call of which nobody knows how far it came."""
    kind: OutcomeKind = "unknown" if call.options.effect == "unsafe" else "failed"
    return told(
        call,
        kind,
        f"The call was interrupted. {MAY_HAVE_RUN}" if kind == "unknown" else "The call failed and was given up.",
    )


def stopped(call: PlannedCall, begun: bool) -> CallOutcome:
    """The outcome of a call that was cancelled with the run or the turn."""
    if call.options.effect == "unsafe" and begun:
        return told(call, "unknown", f"The run was cancelled. {MAY_HAVE_RUN}")
    return told(call, "cancelled", "The call was cancelled with the run.")


def given_up(call: PlannedCall) -> CallOutcome:
    """The outcome of a call that was cancelled, and hasn't ended in the time it had for that: it may go on."""
    if call.options.effect == "safe":
        return stopped(call, begun=True)
    return told(call, "unknown", f"The run was cancelled. {MAY_HAVE_RUN}")


def timed_out(call: PlannedCall, type: TimeoutType | None) -> CallOutcome:
    """The outcome of a call that hasn't begun or ended in time."""
    if type == TimeoutType.SCHEDULE_TO_START:
        before = " An earlier attempt may have run." if call.options.attempts > 1 else ""
        return told(call, "failed", f"The call was never started: no worker took it in time.{before}")
    if call.options.on_timeout == "fail" and type in (TimeoutType.START_TO_CLOSE, TimeoutType.SCHEDULE_TO_CLOSE):
        message = f"tool {call.tool!r} did not end within {call.options.start_to_close:g} s"
        return told(call, "unknown", MAY_HAVE_RUN, Fault(type="ToolTimeout", message=message))
    if call.options.effect == "unsafe":
        return told(call, "unknown", f"{_lost(type)} {MAY_HAVE_RUN}")
    return told(call, "failed", f"{_lost(type)} It was repeated and then given up.")


def _lost(type: TimeoutType | None) -> str:
    if type == TimeoutType.HEARTBEAT:
        return "The worker that ran the call was lost."
    return "The call did not end in time."
