"""What people see of a run and do to it: what waits, what they send, what they are told, how calls were answered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai.messages import ToolReturnPart
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError, CancelledError

from tests.harness import Handle, Runs, messages, until

Row = dict[str, Any]


async def pending(handle: Handle, count: int) -> list[Row]:
    """What waits, once `count` calls do. Read twice: a query may be answered by a workflow task that is then given up,
    and done once more at a later time."""
    rows: list[Row] = []

    async def there() -> bool:
        before = list(rows)
        rows[:] = await handle.query("pending")
        return len(rows) == count and rows == before

    await until(there, every=0.05)
    return rows


async def answers(handle: Handle) -> dict[str, tuple[str, str]]:
    """Outcome and text of the answer to each call, by its id."""
    parts = [part for message in await messages(handle) for part in message.parts]
    return {
        part.tool_call_id: (part.outcome, part.model_response_str(wrap_if_error=False))
        for part in parts
        if isinstance(part, ToolReturnPart)
    }


async def cancelled(handle: Handle) -> None:
    """Cancel a run and wait for its end."""
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()


async def update(handle: Any, verb: str, argument: Any) -> Any:
    """Send an update, as any client would: once more where the run continues as new just now."""
    while True:
        try:
            return await handle.execute_update(verb, argument)
        except WorkflowUpdateFailedError as error:
            if not isinstance(error.cause, ApplicationError) or error.cause.type != "RollingOver":
                raise
        await asyncio.sleep(0.02)


async def refused(handle: Handle, verb: str, argument: Any) -> str:
    """The text a person is told."""
    with pytest.raises(WorkflowUpdateFailedError) as raised:
        await update(handle, verb, argument)
    assert isinstance(raised.value.cause, ApplicationError)
    return f"{raised.value.cause.type}: {raised.value.cause.message}"


async def cancelled_soon(handle: Handle, seconds: float = 5) -> None:
    """Cancel a run; it must end so, and soon."""
    await handle.cancel()
    async with asyncio.timeout(seconds):
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
    assert isinstance(caught.value.cause, CancelledError), caught.value.cause
    assert (await handle.describe()).status == WorkflowExecutionStatus.CANCELED


async def texts(handle: Handle) -> list[str]:
    """What the model is told of each call."""
    return [text for _, text in (await answers(handle)).values()]


async def rejected(handle: Handle, count: int) -> bool:
    """Whether so many decisions were rejected."""
    return (await handle.query("status"))["rejected_count"] == count


async def only(handle: Handle) -> tuple[str, str]:
    """Outcome and text of the one call of a run."""
    ((outcome, text),) = (await answers(handle)).values()
    return outcome, text


async def told(runs: Runs, agent: str, **request: Any) -> tuple[str, str]:
    """A run of one call: its outcome and text."""
    handle = await runs.start(agent, "go", **request)
    assert (await handle.result())["output"] == "done"
    return await only(handle)
