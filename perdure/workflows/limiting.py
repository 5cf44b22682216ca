"""What becomes of a run that reaches a limit: it fails, or it waits, at rest, until people raise the limit.

Limits are looked at between what the run does: before a model request, after one, and before the calls of a step. So
nothing has to be undone, and what was done isn't done again. A deadline that fails the run ends what runs: `session`.
"""

from __future__ import annotations

from collections.abc import Callable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import ApprovalTerms, PlannedCall
    from perdure.errors import LimitExceeded
    from perdure.workflows import budget, clock, waits
    from perdure.workflows.budget import Reached
    from perdure.workflows.cancelling import raise_if_cancelled
    from perdure.workflows.state import RunState
    from perdure.workflows.waiting import ask, decided
    from perdure.workflows.waits import Resolution, Waiting


def before_request(state: RunState) -> Reached | None:
    """What doesn't let the next model request be made."""
    turn = budget.used_since(state.turn_usage, state.usage)
    return budget.before_request(state.limits, state.usage, turn, state.counted_input) or _passed(state)


def before_calls(state: RunState, calls: int, input_tokens: int) -> Reached | None:
    """What doesn't let the calls of the step in progress be made, or its output be used."""
    turn = budget.used_since(state.turn_usage, state.usage)
    return (
        budget.after_request(state.limits, state.usage, turn, input_tokens)
        or budget.before_calls(state.limits, state.usage, turn, calls)
        or (_passed(state) if calls else None)
    )


def _passed(state: RunState) -> Reached | None:
    """A deadline that has passed, where that doesn't end the turn by itself."""
    return clock.passed(state) if _asks(state) else None


def _asks(state: RunState) -> bool:
    return state.plan is not None and state.plan.on_limit == "ask"


def _is_of_above(state: RunState, found: Reached) -> bool:
    """Whether it is what the run above had left: it can be raised only there."""
    if state.request is None or state.request.within is None:
        return False
    bound = getattr(state.request.within.room, found.limit, None)
    return bound is not None and getattr(state.limits, found.limit) >= bound


async def within(state: RunState, check: Callable[[], Reached | None]) -> None:
    """Go on as soon as `check` finds no limit reached. Raises `LimitExceeded`, or `CancelledError` while it waits."""
    while True:
        found, waiting = check(), waits.of_limit(state.waiting)
        if waiting is None:
            if found is None:
                return
            if not _asks(state) or _is_of_above(state, found):
                raise LimitExceeded(found.message)
            waiting = _ask(state, found)
        elif found is None or found.limit != waiting.call.args["limit"]:  # raised before a continued run stood here
            waiting.resolution = Resolution("raised")
        state.check = check
        await decided(state, waiting)
        raise_if_cancelled()
        resolution = waiting.resolution or Resolution("expired")
        if resolution.outcome != "raised":
            why = "nobody raised it in time" if resolution.outcome == "expired" else _denied(resolution)
            raise LimitExceeded(f"{found.message if found else waiting.call.args}; {why}")


def _denied(resolution: Resolution) -> str:
    by = f" by {resolution.by!r}" if resolution.by else ""
    return f"raising it was {resolution.outcome}{by}{f': {resolution.reason}' if resolution.reason else ''}"


def _ask(state: RunState, found: Reached) -> Waiting:
    """Begin to wait for a limit to be raised."""
    state.limits_asked += 1
    call = PlannedCall(key=f"limit-{state.limits_asked}", tool_call_id="", tool="", args=found.shown())
    terms = state.plan.limit_terms if state.plan else None
    waiting = waits.at_limit(call, terms or ApprovalTerms(), workflow.now())
    ask(state, waiting)
    return waiting
