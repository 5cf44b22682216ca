"""Signals, updates and queries of an open run: whatever is sent, it goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowQueryFailedError, WorkflowUpdateFailedError
from temporalio.common import RawValue

from tests.harness import until, working
from tests.held import Held

BAD_QUERIES: list[list[Any]] = [[7], [{"start": -1}], [{"begin": 0}], [{}, {}], ["0"]]


async def test_unknown_signals_are_kept_as_rejected(client: Client, cache: int) -> None:
    held = Held()
    async with working(client, held.app, cache=cache) as runs:
        handle = await runs.start("talks", "go")
        await handle.signal("early")
        await asyncio.wait_for(held.begun.wait(), 20)
        await handle.signal("aprove", {"call": "1.1"})
        await handle.signal("send", args=["a", "b"])
        await handle.signal("raw", RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b"{broken")))

        async def rejected() -> list[str]:
            return [row["signal"] for row in (await handle.query("status"))["rejected"]]

        async def all_rejected() -> bool:
            return (await handle.query("status"))["rejected_count"] == 64

        assert await rejected() == ["early", "aprove", "send", "raw"]
        for number in range(60):
            await handle.signal(f"noise-{number}")
        await until(all_rejected)
        assert await rejected() == [f"noise-{number}" for number in range(10, 60)]
        held.release.set()
        assert (await handle.result())["output"] == "done"
        assert await all_rejected()


@pytest.mark.parametrize("args", [[], [{"call": "1.1"}], ["a", "b"]], ids=["none", "one", "two"])
async def test_unknown_updates_are_refused_with_text(client: Client, cache: int, args: list[Any]) -> None:
    held = Held()
    async with working(client, held.app, cache=cache) as runs:
        handle = await runs.start("talks", "go")
        await asyncio.wait_for(held.begun.wait(), 20)
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await handle.execute_update("aprove", args=args)  # pyright: ignore[reportUnknownMemberType]
        assert "there is no update 'aprove'" in str(caught.value.cause)
        held.release.set()
        await handle.result()
        kinds = [event.event_type for event in (await handle.fetch_history()).events]
    assert EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED not in kinds


@pytest.mark.parametrize("args", [[], [1], [1, 2]], ids=["none", "one", "two"])
async def test_queries_answer_during_a_run_and_after_it(client: Client, cache: int, args: list[Any]) -> None:
    held = Held()
    async with working(client, held.app, cache=cache) as runs:
        handle = await runs.start("talks", "go")
        await asyncio.wait_for(held.begun.wait(), 20)
        for _ in range(2):
            with pytest.raises(WorkflowQueryFailedError, match="Known queries: status, transcript"):
                await handle.query("statuss", args=args)
            for bad in BAD_QUERIES:
                with pytest.raises(WorkflowQueryFailedError, match="start"):
                    await handle.query("transcript", args=bad)
            assert (await handle.query("status", args=args))["agent"] == "talks"
            assert (await handle.query("transcript", {"start": 10_000}))["entries"] == []
            assert len((await handle.query("transcript", {"max_bytes": 1}))["entries"]) == 1
            held.release.set()
            await handle.result()
        assert (await handle.query("status"))["state"] == "done"
        assert await handle.query("audit", args=args) == []
