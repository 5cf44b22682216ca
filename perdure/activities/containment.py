"""A worker outlives a tool that calls `sys.exit()`.

asyncio lets `SystemExit` of any task out of the event loop: every run of the worker would stand still, and a supervisor
would see a process that neither serves nor ends. So it becomes an ordinary exception, `Exited`, where users' code is
called. `KeyboardInterrupt` is let through, since it may be the one of the terminal.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor


class Exited(Exception):
    """Code of users called `sys.exit()` or raised `SystemExit`. Treated as any other exception of that code."""


@contextmanager
def contained() -> Generator[None]:
    """Raise `Exited` in the place of `SystemExit`. To be used in the task that runs the code."""
    try:
        yield
    except SystemExit as error:
        raise Exited(f"sys.exit({error.code!r}) was called") from error


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
        except Exited as error:
            activity.logger.error("%s", error, exc_info=error)
            raise ApplicationError(str(error), type=Exited.__name__, non_retryable=True) from None
