"""What it means for a call that somebody else's activity, workflow or operation failed. Pure functions.

The text of an error may hold a secret, so the model is told its type and not its message, unless that is meant for it.
"""

from __future__ import annotations

from enum import Enum

from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    FailureError,
    TerminatedError,
    TimeoutError,
    WorkflowAlreadyStartedError,
)

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import MAY_HAVE_RUN, CallOutcome, PlannedCall, Target, cut, told, visible
    from perdure.workflows.cancelling import cancelled
    from perdure.workflows.effects import lost, stopped, timed_out
    from perdure.workflows.options import TOLD_ERRORS, TOO_LARGE

MAX_TYPE = 100
BODY_TOO_LARGE = "response body too large"
"""What a server says of a Nexus operation whose result is more than it takes, as a `CallError`."""


def outcome_of_remote(call: PlannedCall, target: Target, failure: FailureError) -> CallOutcome:
    """The outcome of a call that failed instead of answering, by what it was and by its effect class."""
    if isinstance(failure, WorkflowAlreadyStartedError):
        return told(call, "unknown", f"The call was made before the run was reset. {MAY_HAVE_RUN}")
    cause = failure.cause or failure
    match cause:
        case CancelledError():
            begun = not isinstance(failure, ActivityError) or failure.started_event_id != 0
            return stopped(call, begun) if cancelled() else _ended_by_others(call, "cancelled")
        case TerminatedError():
            return _ended_by_others(call, "terminated")
        case TimeoutError():
            return timed_out(call, cause.type)
        case ApplicationError(type="WorkerShutdown"):
            return lost(call)
        case _:
            return told(call, "failed", _text(target, cause))


def _ended_by_others(call: PlannedCall, how: str) -> CallOutcome:
    kind = "unknown" if call.options.effect == "unsafe" else "failed"
    return told(call, kind, f"The call was {how} by somebody else. {MAY_HAVE_RUN}")


def _text(target: Target, cause: BaseException) -> str:
    """What the model is told of an error: of a chain of them, the one that began it."""
    while not isinstance(cause, ApplicationError) and cause.__cause__ is not None:
        cause = cause.__cause__
    name = _name(cause)
    if name == TOO_LARGE or (name == "CallError" and BODY_TOO_LARGE in str(cause)):
        return "The call ran, but its result is too large."
    if isinstance(cause, ApplicationError) and name in TOLD_ERRORS:
        return cut(cause.message)
    shown = visible(cut(name, MAX_TYPE))
    if target.tells_errors:
        message = cause.message if isinstance(cause, FailureError) else str(cause)
        return f"The call failed: {shown}: {cut(message)}"
    return f"The call failed: {shown}."


def _name(cause: BaseException) -> str:
    if isinstance(cause, ApplicationError) and cause.type:
        return cause.type
    kind = getattr(cause, "type", None)  # of the HandlerError of Nexus: NOT_FOUND, BAD_REQUEST, …
    return f"{type(cause).__name__} {kind.value}" if isinstance(kind, Enum) else type(cause).__name__
