"""What only clients raise: never in a workflow's history.

    ClientError               base of what only clients raise; never in a workflow's history
    ├── NoServer              no Temporal server answers at the address
    ├── NoSuchRun             there is no run of that id in the namespace
    ├── RunExists             the id was used before
    ├── RunClosed             the run has ended: nothing can be decided any more
    ├── Refused               a decision was refused; carries the type and message of the refusal
    ├── RunFailed             the run ended without a result; carries the failure's type and message
    └── NoAnswer              no worker of the run's task queue answered a query: the message says why

`temporalio.service.RPCError` is let through for the rest (permissions, a server that goes away, …).
"""

from __future__ import annotations

from typing import Any

from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError, TimeoutError
from temporalio.service import RPCError, RPCStatusCode


class ClientError(Exception):
    """Base of what only clients raise."""


class NoServer(ClientError):
    """No Temporal server answers. Start one (`perdure dev`), or set TEMPORAL_ADDRESS."""


class NoSuchRun(ClientError, LookupError):
    """There is no run of that id in the namespace: never started, or deleted after the namespace's retention."""


class RunExists(ClientError):
    """The id was used before, by a running or an ended run. Choose another, or none."""


class NoAnswer(ClientError):
    """No worker answered a query: none polls, the workflow task fails, or a worker is slow. The message says which.

    The run itself isn't affected: it goes on when a worker polls its task queue and can do its workflow task.
    """


class RunClosed(ClientError):
    """The run has ended, so nothing can be decided any more. Its queries go on working."""


class Refused(ClientError):
    """A decision was refused, and nothing was changed: the message says why and names what is pending."""

    def __init__(self, type: str, message: str) -> None:
        super().__init__(f"{type}: {message}")
        self.type = type
        """`NotPending`, `AlreadyDecided`, `NotAllowed`, `NotChecked` or `InvalidRequest`."""
        self.message = message


class RunFailed(ClientError):
    """The run ended without a result."""

    def __init__(self, run: str, type: str, message: str, details: tuple[Any, ...] = ()) -> None:
        super().__init__(f"{type}: {message}")
        self.run = run
        self.type = type
        """A class name of `perdure.errors` or of Pydantic AI, or `Cancelled`, `Terminated`, `TimedOut`."""
        self.message = message
        self.details = details


def run_failed(run: str, cause: BaseException | None) -> RunFailed:
    """What a run ended with, typed. `cause` is that of Temporal's `WorkflowFailureError`."""
    match cause:
        case ApplicationError():
            return RunFailed(run, cause.type or "ApplicationError", cause.message, tuple(cause.details))
        case CancelledError():
            return RunFailed(run, "Cancelled", "the run was cancelled")
        case TerminatedError():
            return RunFailed(run, "Terminated", str(cause) or "the run was terminated")
        case TimeoutError():
            return RunFailed(run, "TimedOut", "the run's execution timeout has passed")
        case _:
            return RunFailed(run, type(cause).__name__, str(cause))


def missing(run: str, error: RPCError) -> Exception:
    """`NoSuchRun` where the server says that there is no such run, else the error itself."""
    if error.status != RPCStatusCode.NOT_FOUND:
        return error
    return NoSuchRun(f"there is no run {run!r} in this namespace: `perdure list` shows the runs")
