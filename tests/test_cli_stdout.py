"""Standard output of `perdure` is for results: what Temporal's Rust core logs goes elsewhere."""

from __future__ import annotations

import asyncio
import sys
import uuid

from temporalio.client import Client

from tests.command import ROOT, running
from tests.proxy import proxy

RETRIES = """
import asyncio, sys
from datetime import timedelta

from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.service import RPCError

from perdure.cli.connecting import connect


async def main(address):
    client = await connect(address=address)
    print("connected", file=sys.stderr, flush=True)
    sys.stdin.readline()
    try:
        service = client.client.workflow_service
        await service.get_system_info(GetSystemInfoRequest(), retry=True, timeout=timedelta(seconds=3))
    except RPCError:
        print("the result")


asyncio.run(main(sys.argv[1]))
"""
"""What a command does when the server goes away: the core tries again, and says so."""


async def test_a_call_that_is_tried_again_leaves_stdout_to_the_result(client: Client) -> None:
    async with proxy(client.service_client.config.target_host) as wire:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
        words = (sys.executable, "-c", RETRIES, wire.address)
        process = await asyncio.create_subprocess_exec(*words, cwd=ROOT, **pipes)
        assert process.stderr
        assert (await process.stderr.readline()).decode() == "connected\n"
        wire.cut()
        out, err = await process.communicate(b"\n")
    assert (process.returncode, out.decode(), err.decode()) == (0, "the result\n", "")


async def test_what_a_worker_logs_of_the_core_is_on_stderr(client: Client) -> None:
    async with proxy(client.service_client.config.target_host) as wire:
        queue = f"q-{uuid.uuid4().hex[:8]}"
        async with running("worker", "perdure.cli.demo_app:app", "--task-queue", queue, address=wire.address) as worker:
            await worker.line("worker polls")
            wire.cut()
            line = await worker.line("temporalio")
            assert "WARNING temporalio: " in line
            assert "\x1b" not in line
            await wire.mend()
            worker.process.terminate()
            done = await worker.end()
    assert (done.code, done.out) == (0, "")
