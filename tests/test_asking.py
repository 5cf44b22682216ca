"""A query that is lost is asked again, once, and says so; one with a time limit of its own isn't."""

from __future__ import annotations

import asyncio
import warnings
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.service import RPCError

from tests import asking
from tests.harness import Handle, until, working
from tests.scripts import Script
from tests.sessions import SESSION, closed, turn
from tests.shop import shop


async def test_a_query_that_nobody_answered_is_asked_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "FIRST", timedelta(seconds=2))
    async with working(client, shop(Script("first"), []), check=False) as first:
        handle = await first.start("shop", "go", **SESSION)
        await turn(handle, turn=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RPCError):
            await handle.query("status", rpc_timeout=timedelta(seconds=1))

    async def answered_late(said: pytest.WarningsRecorder) -> Any:
        asked: asyncio.Task[Any] = asyncio.create_task(handle.query("status"))
        await until(lambda: len(said) > 0)  # the first try is over
        async with working(client, shop(Script(), []), task_queue=first.task_queue) as runs:
            runs.handles.append(handle)
            found = await asked
            await closed(handle)
            return found

    with pytest.warns(UserWarning, match=lost(handle)) as said:
        found = await answered_late(said)
    assert found["state"] == "idle"


def lost(handle: Handle) -> str:
    """What is said of a query that is asked again."""
    return f"a query was lost: status of {handle.id}, asked again"
