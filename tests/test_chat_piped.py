"""`perdure chat` without a terminal."""

from __future__ import annotations

import asyncio
import subprocess
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from temporalio.client import Client

from tests.command import Command, address_of, new_id, running
from tests.deciding import pending, update
from tests.harness import Handle, working
from tests.live import heard
from tests.scripts import Script
from tests.sessions import SESSION
from tests.shop import shop


@asynccontextmanager
async def piping(client: Client, agent: str, *options: str) -> AsyncGenerator[Command]:
    """A chat without a terminal."""
    address = address_of(client)
    async with running("chat", agent, *options, address=address, stdin=asyncio.subprocess.PIPE) as command:
        yield command


async def test_without_a_terminal_only_answers_are_on_stdout(client: Client) -> None:
    id, ran = new_id(), list[Any]()
    script = Script({"look": {"n": 1}}, "seen", {"refund": {"n": 1}}, "paid", heard)
    async with working(client, shop(script, ran)) as runs:
        async with piping(client, "shop", "--id", id, "--task-queue", runs.task_queue) as command:
            assert command.process.stdin
            command.process.stdin.write(b"look\n\npay\ny\n")
            command.process.stdin.close()
            waits = await command.line("refund waits")
            handle: Handle = client.get_workflow_handle(id)
            (row,) = await pending(handle, 1)
            assert waits == f"waiting   refund waits: perdure approve {id} {row['call']}"
            await update(handle, "approve", {"call": row["call"]})
            done = await command.end()
        assert (done.code, done.out) == (0, "seen\npaid\nheard y\n"), done.err
        assert done.last == f"session   perdure chat shop --id {id}"
        for line in ("user      look", "returned  look → saw 1", "model     heard y"):
            assert line in done.err
        assert ran == [("look", 1), ("refund", 1)]
        again = await perdure_piped(client, "bye\n/close\n", "shop", "--id", id)
        assert (again.returncode, again.stdout) == (4, ""), "the script is exhausted"
        await handle.result()


async def perdure_piped(client: Client, typed: str, *args: str) -> subprocess.CompletedProcess[str]:
    """A whole chat."""
    async with piping(client, *args) as command:
        out, err = await command.process.communicate(typed.encode())
        code = command.process.returncode
        assert code is not None
        return subprocess.CompletedProcess(args, code, out.decode(), err.decode())


async def test_an_agent_that_nobody_knows_ends_the_chat(client: Client) -> None:
    async with working(client, shop(Script("hello"), []), check=False) as runs:
        done = await perdure_piped(client, "hi\n", "nobody", "--task-queue", runs.task_queue)
        assert (done.returncode, done.stdout) == (4, "")
        assert done.stderr.splitlines()[-1] == "UnknownAgent: no agent is named 'nobody'. Known agents: ['shop']"


async def test_a_session_of_another_agent_is_wrong_usage(client: Client) -> None:
    async with working(client, shop(Script("hello"), [])) as runs:
        handle = await runs.start("shop", "hi", **SESSION)
        done = await perdure_piped(client, "hi\n", "holder", "--id", handle.id)
        assert done.returncode == 2
        assert "is one with 'shop'" in done.stderr
        await update(handle, "close", {})


async def test_a_chat_that_began_before_its_worker_goes_on_with_it(client: Client) -> None:
    id, queue = new_id(), f"q-{uuid.uuid4().hex[:8]}"
    async with piping(client, "shop", "--id", id, "--task-queue", queue) as command:
        assert command.process.stdin
        command.process.stdin.write(b"hi\n")
        command.process.stdin.close()
        assert (await command.line("no worker polls")).startswith(f"waiting   no worker polls task queue {queue!r}")
        async with working(client, shop(Script("hello"), []), task_queue=queue):
            done = await command.end()
            assert (done.code, done.out) == (0, "hello\n"), done.err
            await update(client.get_workflow_handle(id), "close", {})
            await client.get_workflow_handle(id).result()
