"""Moving the clock of a run: see `tests.test_time`."""

from __future__ import annotations

from datetime import timedelta

from temporalio.testing import WorkflowEnvironment

from tests.harness import Handle

DAY = timedelta(days=1)
MONTH = 30 * DAY
YEARS = timedelta(days=3650)
"""Execution timeout: it goes by the run's clock, too."""


async def skip(clock: WorkflowEnvironment, handle: Handle, duration: timedelta) -> None:
    """Move the clock of one run that goes on."""
    assert await clock.fast_forward(handle, duration)
