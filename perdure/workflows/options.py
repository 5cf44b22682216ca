"""What was planned for a call, as Temporal's options of an activity. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import PlannedCall

TOLD_ERRORS = ("ToolFailed", "ModelRetry")
"""Types of errors whose messages are meant for the model: Pydantic AI's own. Nothing is repeated after one."""
TOO_LARGE = "PayloadsTooLarge"
"""The type of the error by which Temporal's SDKs report an activity whose result is more than the server takes. It ran,
so it isn't repeated."""


def activity_options(call: PlannedCall) -> dict[str, Any]:
    """All but queue and heartbeat, which depend on who runs it."""
    options = call.options
    return {
        "start_to_close_timeout": timedelta(seconds=options.start_to_close),
        "schedule_to_start_timeout": None
        if options.schedule_to_start is None
        else timedelta(seconds=options.schedule_to_start),
        "retry_policy": RetryPolicy(
            maximum_attempts=options.attempts,
            initial_interval=timedelta(seconds=options.backoff),
            maximum_interval=timedelta(seconds=max(60.0, options.backoff)),
            non_retryable_error_types=[*TOLD_ERRORS, TOO_LARGE] if call.target else None,
        ),
        "cancellation_type": workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        "summary": call.key,
    }
