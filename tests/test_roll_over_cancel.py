"""A cancel that comes when a run has just continued as new, and hasn't taken up what it carries."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError

from tests.conftest import server
from tests.harness import Handle, messages, until, working
from tests.reading import returns
from tests.scripts import Script
from tests.shop import shop

ASKED: list[ToolCallPart] = [ToolCallPart("refund", {"n": 2}), ToolCallPart("look", {"n": 1})]


@pytest.fixture(scope="module")
async def soon() -> AsyncGenerator[Client]:
    """A client of a server that suggests to continue as new in the first step."""
    async with server("limit.historyCount.suggestContinueAsNew=12") as started:
        yield started.client


async def rolled_over(client: Client, first: Handle) -> Handle:
    """The run of the chain that follows, as soon as it is there."""
    latest = client.get_workflow_handle(first.id)

    async def continued() -> bool:
        return (await latest.describe()).run_id != first.first_execution_run_id

    await until(continued, every=0.001)
    return latest


@pytest.mark.parametrize("session", [{}, {"session": {}}], ids=["single", "session"])
async def test_every_call_has_its_answer(soon: Client, cache: int, session: dict[str, Any]) -> None:
    ran: list[Any] = []
    script = Script([*ASKED], "done")
    async with working(soon, shop(script, ran), cache=cache) as runs:
        started = await runs.start("shop", "go", **session)
        run = await rolled_over(soon, started)
        await run.cancel()
        with pytest.raises(WorkflowFailureError):
            await run.result()
        assert (await run.describe()).status == WorkflowExecutionStatus.CANCELED
        outcomes = {part.tool_name: part.outcome for part in returns(await messages(run))}
        turn, pending = await run.query("turn", {"turn": 1}), await run.query("pending")
    assert outcomes == {"look": "success", "refund": "interrupted"}
    assert (turn["state"], pending) == ("interrupted", [])
    assert ran == [("look", 1)]
