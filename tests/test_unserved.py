"""What a run waits for that nobody serves: a call on a queue without a worker, a workflow whose own task fails."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from perdure import App, DurableAgent, TaskQueue, ToolPolicy
from perdure.client import NoAnswer, RunHandle
from perdure.toolsets.agent import agent_tool
from perdure.toolsets.temporal import TemporalTools
from tests.command import perdure, running
from tests.family import boss
from tests.harness import Runs, until, working
from tests.scripts import Script


def address_of(client: Client) -> str:
    return client.service_client.config.target_host


def place(client: Client, queue: str) -> str:
    return f"task queue {queue!r} at {address_of(client)} (namespace 'default')"


def new_queue() -> str:
    return f"other-{uuid.uuid4().hex[:12]}"


@activity.defn(name="Balance")
async def balance(order: dict[str, Any]) -> int:
    """Stands for an activity of another team."""
    return len(order["order_id"])


@workflow.defn(name="Pack")
class Pack:
    """Stands for a workflow of another team."""

    @workflow.run
    async def run(self, order: dict[str, Any]) -> str:
        return f"packed {order['order_id']}"


@workflow.defn(name="Another")
class Another:
    """Not the workflow that is asked for."""

    @workflow.run
    async def run(self) -> None:
        return None


class Order(BaseModel):
    """An order."""

    order_id: str


def clerk(script: Script, queue: str) -> App:
    """An agent whose tools are another team's."""
    tools = TemporalTools("theirs", task_queue=queue)
    tools.activity("Balance", name="balance", description="What is to be paid.", input_model=Order)
    tools.workflow("Pack", name="pack", description="Pack it.", input_model=Order)
    policies = {"balance": ToolPolicy(effect="safe"), "pack": ToolPolicy(effect="safe")}
    return App(agents=[DurableAgent(Agent(script.model, name="clerk", toolsets=[tools]), policies=policies)])


def crm(script: Script, queue: str, *more: DurableAgent) -> App:
    """An agent with a tool on a queue of its own."""
    tools = FunctionToolset[None](id="crm")

    @tools.tool_plain
    def find(n: int) -> str:
        """Find a customer."""
        return f"found {n}"

    policies = {"find": ToolPolicy(effect="safe", task_queue=queue)}
    durable = DurableAgent(Agent(script.model, name="crm", toolsets=[tools]), policies=policies)
    return App(agents=[durable, *more], task_queues={queue: TaskQueue()})


async def told(client: Client, id: str) -> str:
    """What a run waits for that nobody serves, once there is something."""
    run, lines = RunHandle(client, id), list[str]()

    async def there() -> bool:
        lines[:] = await run.unserved()
        return bool(lines)

    await until(there, every=0.2)
    (line,) = lines
    return line


async def test_an_activity_of_others_that_nobody_serves(client: Client, cache: int) -> None:
    queue = new_queue()
    async with working(client, clerk(Script({"balance": {"order_id": "A-1"}}, "done"), queue), cache=cache) as runs:
        handle = await runs.start("clerk", "go")
        where = f"no worker polls {place(client, queue)}, where"
        assert await told(client, handle.id) == f"{where} the activity 'Balance' waits: start the worker that serves it"
        async with Worker(client, task_queue=queue, activities=[balance]):
            assert (await handle.result())["output"] == "done"
        assert await RunHandle(client, handle.id).unserved() == []


async def test_a_workflow_of_others_that_nobody_serves_or_knows(client: Client) -> None:
    queue = new_queue()
    async with working(client, clerk(Script({"pack": {"order_id": "A-1"}}, "done"), queue)) as runs:
        handle = await runs.start("clerk", "go")
        why = (
            f"no worker polls {place(client, queue)}, where the workflow 'Pack' waits: start the worker that serves it"
        )
        assert await told(client, handle.id) == why
        async with Worker(client, task_queue=queue, workflows=[Another], workflow_runner=UnsandboxedWorkflowRunner()):

            async def fails() -> bool:
                return "fails and is tried again" in "".join(await RunHandle(client, handle.id).unserved())

            await until(fails, every=0.2)
            line = await told(client, handle.id)
            assert line.startswith(
                f"a worker polls {place(client, queue)}, but the workflow task of the workflow 'Pack' fails"
            )
            assert "Pack is not registered" in line
        async with Worker(client, task_queue=queue, workflows=[Pack], workflow_runner=UnsandboxedWorkflowRunner()):
            assert (await handle.result())["output"] == "done"


async def test_a_queue_of_the_app_that_was_left_out(client: Client) -> None:
    queue = new_queue()
    app = crm(Script({"find": {"n": 1}}, "done"), queue)
    async with working(client, app, without=[queue]) as runs:
        handle = await runs.start("crm", "go")
        start = f"start one with `perdure worker MODULE:APP --only {queue}`"
        assert (
            await told(client, handle.id)
            == f"no worker polls {place(client, queue)}, where a call of 'find' waits: {start}"
        )
        async with running("tail", handle.id, address=address_of(client)) as tail:
            assert await tail.line("no worker polls") == (
                f"waiting   no worker polls {place(client, queue)}, where a call of 'find' waits: {start} "
                "(Ctrl-C ends only this command)"
            )
            shown = await perdure("show", handle.id, address=address_of(client))
            assert (
                f"waiting   no worker polls {place(client, queue)}, where a call of 'find' waits: {start}" in shown.out
            )
            async with working(client, app, only=[queue], task_queue=runs.task_queue, check=False):
                assert (await handle.result())["output"] == "done"
                done = await tail.end()
        assert (done.code, done.err.count("no worker polls")) == (0, 1)


async def test_a_call_of_a_run_below_that_nobody_serves(client: Client) -> None:
    queue = new_queue()
    top = boss(Script({"ask_crm": {"prompt": "x"}}, "done"), agent_tool("crm"))
    app = crm(Script({"find": {"n": 1}}, "found"), queue, top)
    async with working(client, app, without=[queue]) as runs:
        handle = await runs.start("boss", "go")
        assert f"no worker polls {place(client, queue)}, where a call of 'find' waits" in await told(client, handle.id)
        async with working(client, app, only=[queue], task_queue=runs.task_queue, check=False):
            assert (await handle.result())["output"] == "done"


async def test_start_and_chat_say_it(client: Client) -> None:
    queue = new_queue()
    script = Script({"find": {"n": 1}}, "done", {"find": {"n": 2}}, "done")
    app = crm(script, queue)
    async with working(client, app, without=[queue]) as runs:
        where, address = ("--task-queue", runs.task_queue), address_of(client)
        async with running("start", "crm", "go", *where, address=address) as start:
            assert f"no worker polls task queue {queue!r}" in await start.line("no worker polls")
            async with running("chat", "crm", *where, address=address, stdin=asyncio.subprocess.PIPE) as chat:
                assert chat.process.stdin
                chat.process.stdin.write(b"go\n/close\n")
                chat.process.stdin.close()
                assert f"no worker polls task queue {queue!r}" in await chat.line("no worker polls")
                async with working(client, app, only=[queue], task_queue=runs.task_queue, check=False):
                    assert (await start.end()).out == "done\n"
                    assert (await chat.end()).out == "done\n"


async def test_a_worker_that_was_stopped_is_told_from_one_that_is_busy(client: Client) -> None:
    queue = new_queue()
    app = crm(Script("done"), queue)
    async with working(client, app) as runs:
        await runs.run("crm", "go")
    async with working(client, app, only=[queue], check=False):
        handle = await Runs(client, runs.task_queue).start("crm", "go")
        with pytest.raises(NoAnswer) as failed:
            await RunHandle(client, handle.id, query_timeouts=[0.5]).status()
        assert str(failed.value).startswith(
            f"no worker polls {place(client, runs.task_queue)}: start one with `perdure"
        )
        await handle.terminate()
