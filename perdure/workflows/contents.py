"""Whether what people send is something a model can be given. Only a worker knows: content parts are Pydantic AI's.

Text needs no check. A list of parts that isn't valid never gets into the transcript, where it would fail every later
request: its message gets a turn of its own, which fails. Where no worker is there, the check waits for one.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, FailureError

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import ContentInput, Message, ResultCheck, cut
    from perdure.workflows.cancelling import raise_if_cancelled
    from perdure.workflows.requests import execute
    from perdure.workflows.state import RunState

MAX_PROBLEM = 1_000
"""Characters of what is wrong with a message."""


async def check_first(state: RunState) -> None:
    """See to it that the message that is next has been checked."""
    while not _is_checked(state.queue[0]):
        await _check(state, state.queue[0])


async def check_joining(state: RunState) -> None:
    """See to it that the messages that join the running turn have been checked; one that can't gets its own turn."""
    while unchecked := [
        message for message in state.queue if message.when_busy == "steer" and not _is_checked(message)
    ]:
        await _check(state, unchecked[0])


def _is_checked(message: Message) -> bool:
    return isinstance(message.content, str) or message.checked


async def _check(state: RunState, message: Message) -> None:
    try:
        raw = await execute(
            state,
            "check_content",
            ContentInput(content=list(message.content)),
            start_to_close_timeout=timedelta(seconds=10),
            retry_policy=RetryPolicy(maximum_attempts=3),
            summary=message.id,
        )
        problem = cut(ResultCheck.model_validate(raw).problem, MAX_PROBLEM)
    except FailureError as failure:
        raise_if_cancelled()
        cause = failure.cause if isinstance(failure, ActivityError) else failure
        problem = cut(f"the message could not be checked: {cause or failure}", MAX_PROBLEM)
    checked = message.model_copy(update={"checked": True, "problem": problem})
    if problem:
        checked = checked.model_copy(update={"when_busy": "queue"})
    state.queue = [checked if other.id == message.id else other for other in state.queue]
