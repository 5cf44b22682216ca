"""Workers that are killed while a run below goes on."""

from __future__ import annotations

import signal
import uuid
from pathlib import Path

from temporalio.client import Client

from tests.deciding import answers
from tests.family import children
from tests.harness import check_run, until
from tests.sites import Site, stopped


async def test_both_runs_go_on_in_another_worker(client: Client, tmp_path: Path) -> None:
    site = Site(client, tmp_path, f"crash-{uuid.uuid4().hex[:12]}", "tests.subagent_crash_app", "above")
    async with site.worker() as first:
        handle = await site.start("go")
        await until(lambda: len(site.rows("ran")) == 1)
        await stopped(first, signal.SIGKILL)
    site.release()
    async with site.worker():
        result = await handle.result()
        assert (result["output"], result["usage"]["requests"]) == ("above is done", 4)
        assert await answers(handle) == {"c0.0": ("success", "success: safe ran in attempt 2")}
        (child,) = await children(client, handle)
        await check_run(handle)
        await check_run(child)
    assert [row["attempt"] for row in site.rows("ran")] == [1, 2]
