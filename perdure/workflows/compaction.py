"""When older messages give way to a summary, and what becomes of the run when that fails.

A compaction is an activity of its own, whose answer is a note in the transcript, from which nothing is removed. One
that fails, or finds nothing to cover, doesn't end the run: it goes on with the whole conversation, a warning says so
where it failed, and the next one is tried when the context has grown by a tenth. Where the model then refuses a request
that is too large, the run ends with the provider's own error.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, FailureError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import CompactInput, Compaction, Usage, cut
    from perdure.workflows import budget, details, warned
    from perdure.workflows.cancelling import raise_if_cancelled
    from perdure.workflows.requests import HEARTBEAT, execute, position
    from perdure.workflows.state import RunState

GROWN = 1.1
"""How much larger the context has to be before another compaction is tried after one that was no use."""
MAX_REQUESTS = 4
"""A summary may take several model requests, so its activity gets the time of so many."""


def measure(state: RunState, used: Usage) -> None:
    """Note how large the context is, by what the last step used. A provider that doesn't say leaves it unknown."""
    if tokens := used.input_tokens + used.output_tokens:
        state.context_tokens = tokens
        if state.compact_floor is None:
            state.compact_floor = int(tokens * GROWN)


async def compact_if_due(state: RunState) -> None:
    """Compact where the last request was above the plan's tokens. That a request is allowed now has been looked at."""
    plan = state.plan
    if plan is None or plan.compact_above is None:
        return
    if state.context_tokens <= max(plan.compact_above, state.compact_floor or 0):
        return
    if await compact(state, plan.compact_keep) is None:
        state.compact_floor = int(state.context_tokens * GROWN)


async def compact(state: RunState, keep_bytes: int) -> int | None:
    """Compact all but the last messages of at most so many bytes, now, between two steps.

    Returns how many entries of the transcript the note stands for; `None` where there is no note: nothing to cover, no
    model request to spare, or a failure, which is a warning. What the summary used is counted; see to the limits after.
    """
    left = budget.requests_left(state.limits, state.usage, budget.used_since(state.turn_usage, state.usage))
    if left is not None and left < 2:
        return None  # the last request is for the run itself
    try:
        done = await _compact(state, keep_bytes, None if left is None else left - 1)
    except (FailureError, ValueError) as failure:
        if isinstance(failure, FailureError) and is_cancelled_exception(failure):
            raise asyncio.CancelledError from None
        raise_if_cancelled()
        _warn(state, failure)
        return None
    state.usage = budget.add_usage(state.usage, done.usage)
    if done.entry is None:
        return None
    state.transcript.append(done.entry | {"at": workflow.now().isoformat(), "step": state.step})
    state.context_tokens, state.compact_floor = 0, None
    details.show(state)
    raise_if_cancelled()
    return done.upto


async def _compact(state: RunState, keep_bytes: int, requests_left: int | None) -> Compaction:
    plan = state.plan
    key = plan.compact_with if plan and plan.compact_with else state.model
    raw = await execute(
        state,
        "compact",
        CompactInput(keep_bytes=keep_bytes, model_key=key, requests_left=requests_left, **position(state)),
        start_to_close_timeout=timedelta(seconds=MAX_REQUESTS * (plan.model_timeout if plan else 600.0)),
        heartbeat_timeout=HEARTBEAT,
        retry_policy=RetryPolicy(
            maximum_attempts=plan.model_attempts if plan else 1, maximum_interval=timedelta(seconds=60)
        ),
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        summary=f"after step {state.step}",
    )
    return Compaction.model_validate(raw)


def _warn(state: RunState, failure: Exception) -> None:
    cause = failure.cause if isinstance(failure, ActivityError) else failure
    text = f"after step {state.step} the conversation could not be compacted: {cut(str(cause or failure), 500)}"
    warned.warn(state, [text])
