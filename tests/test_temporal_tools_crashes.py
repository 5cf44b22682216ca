"""Calls to others while this worker dies, or the run continues as new."""

from __future__ import annotations

import signal
import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from tests.harness import Handle, check_run, until, working
from tests.packing import child_of, packing
from tests.remote import PackOrder, Warehouse, remote
from tests.scripts import Script
from tests.sessions import SESSION, closed, runs_of, send, turn
from tests.sites import Site, stopped
from tests.temporal_crash_app import queue_of


@pytest.fixture
def site(client: Client, tmp_path: Path) -> Site:
    return Site(client, tmp_path, f"crash-{uuid.uuid4().hex[:12]}", module="tests.temporal_crash_app")


@pytest.mark.parametrize("tool", ["hold", "pack"])
async def test_a_call_to_others_outlives_the_worker_that_made_it(client: Client, site: Site, tool: str) -> None:
    warehouse = Warehouse()
    async with remote(client, [warehouse.hold], [PackOrder], task_queue=queue_of(site.folder)):
        async with site.worker() as first:
            handle = await site.start(tool)
            child = await child_of(client, handle) if tool == "pack" else None
            await until(lambda: len(warehouse.ran) == 1 or child is not None)
            await stopped(first, signal.SIGKILL)
        if child is not None:
            await child.signal("pack")
            await child.result()
        warehouse.go.set()
        async with site.worker():
            output: str = (await handle.result())["output"]
            assert output.startswith("success: ")
            await check_run(handle)
    assert len(warehouse.ran) == (1 if tool == "hold" else 0)
    assert len(site.rows("asked")) == 2


async def test_a_run_doesnt_continue_as_new_while_a_child_is_open(rolling_client: Client, cache: int) -> None:
    script = Script({"pack": {"sku": "A-1", "wait": True}}, "packed", "hello", "hello")
    async with remote(rolling_client, workflows=[PackOrder]) as queue:
        async with working(rolling_client, packing(queue, script), cache=cache) as runs:
            handle: Handle = await runs.start("packer", "go", **SESSION)
            child = await child_of(rolling_client, handle)
            for word in ("one", "two"):
                await send(handle, word)
            assert (await rolling_client.get_workflow_handle(handle.id).describe()).run_id == handle.result_run_id
            assert len((await handle.fetch_history()).events) > 20, "it is suggested to continue"
            await child.signal("pack")
            ended: list[Any] = [(await turn(rolling(handle), turn=number))["output"]["value"] for number in (1, 2, 3)]
            assert ended == ["packed", "hello", "hello"]
            assert (await closed(rolling(handle)))["turns"] == 3
            assert await runs_of(rolling(handle)) > 1


def rolling(handle: Handle) -> Handle:
    """The latest run of a chain."""
    client: Client = handle._client  # pyright: ignore[reportPrivateUsage]
    return client.get_workflow_handle(handle.id)
