"""The activities `notify` and `dispatch`: what an app tells people, and what it hands to other systems."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from perdure.activities.faults import log_error
from perdure.activities.reported import Reported
from perdure.activities.runtime import Runtime
from perdure.contracts import ExternalCall, Notification

T = TypeVar("T")


class Telling:
    """Holds what the worker has opened; its methods are the activities. 30 s an attempt, 10 minutes in all."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @activity.defn(name="notify")
    async def notify(self, notification: Notification) -> None:
        """Call the app's notifier. What it raises is repeated, unless it is a non-retryable `ApplicationError`."""
        await _call(self._runtime.app.notifier, notification, "notifier")

    @activity.defn(name="dispatch")
    async def dispatch(self, call: ExternalCall) -> None:
        """Call the dispatcher of the tool's policy. What it raises is repeated, as for `notify`."""
        policy = self._runtime.app.agent(call.agent).policy(call.tool)
        await _call(policy.dispatch, call, f"dispatcher of {call.tool!r}")


async def _call(function: Callable[[T], Awaitable[None]] | None, argument: T, what: str) -> None:
    if function is None:
        raise ApplicationError(f"this worker's App has no {what}", type="NotDeclared")
    try:
        await function(argument)
    except ApplicationError as error:
        raise ApplicationError(error.message, type=error.type, non_retryable=error.non_retryable) from None
    except Exception as error:  # its text may hold a secret: it goes to the log alone
        log_error(what, error)
        raise Reported(f"the {what} raised {type(error).__name__}", type=type(error).__name__) from None
