"""What users' code raises beside exceptions is contained where that code is called, as an ordinary exception.

asyncio lets `SystemExit` of any task out of the event loop: every run of the worker would stand still, and a supervisor
would see a process that neither serves nor ends. It becomes `Exited`. A `CancelledError` that nobody has asked for, as
of a task that code has awaited and another has cancelled, would pass for a cancel of the activity: it becomes
`SelfCancelled`. `KeyboardInterrupt` is let through, since it may be the one of the terminal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor


class Exited(Exception):
    """Code of users called `sys.exit()` or raised `SystemExit`. Treated as any other exception of that code."""


class SelfCancelled(Exception):
    """Code of users raised `CancelledError` though nobody cancelled it. Treated as any other exception of that code."""


@contextmanager
def contained() -> Generator[None]:
    """Raise `Exited` and `SelfCancelled` in their place. To be used in the task that runs the code."""
    try:
        yield
    except SystemExit as error:
        raise Exited(f"sys.exit({error.code!r}) was called") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise SelfCancelled("CancelledError was raised, though nobody cancelled this") from error


class Containment(Interceptor):
    """Holds what comes out of an activity in spite of that: it fails, and isn't repeated."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Around every activity of the worker."""
        return _Contained(next)


class _Contained(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        try:
            with contained():
                return await super().execute_activity(input)
        except (Exited, SelfCancelled) as error:
            activity.logger.error("%s", error, exc_info=error)
            raise ApplicationError(str(error), type=type(error).__name__, non_retryable=True) from None
