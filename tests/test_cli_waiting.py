"""What waits for a person or a result is said by `start`, `tail` and `send`, once, with a command that works when it is
copied."""

from __future__ import annotations

import shlex
import uuid
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from temporalio.client import Client

from perdure import App, Approval, DurableAgent
from perdure.cli.waits import decision
from tests.command import Command, perdure, running
from tests.deciding import pending, update
from tests.family import children, firm
from tests.harness import working
from tests.proxy import proxy
from tests.scripts import Script
from tests.sessions import SESSION, closed
from tests.shop import shop
from tests.terminal import in_a_terminal


def address_of(client: Client) -> str:
    return client.service_client.config.target_host


def new_id() -> str:
    return f"run-{uuid.uuid4().hex[:8]}"


async def copied(line: str, *more: str, address: str = "", by: str = "ann") -> None:
    """Run the command at the end of a line, as somebody would who copies it and puts in a name."""
    words = shlex.split(line.partition(": perdure ")[2].replace("NAME", by).replace("JSON", "'7'"))
    done = await perdure(*words, *more, address=address)
    assert done.code == 0, done.err


async def said(command: Command) -> str:
    return await command.line(": perdure ")


async def test_start_says_what_waits_and_the_command_works(client: Client) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, {"refund": {"n": 2}}, "done")
    async with working(client, shop(script, ran, Approval(approvers=["ann"]))) as runs:
        id, address = new_id(), address_of(client)
        asked = ("start", "shop", "go", "--id", id, "--task-queue", runs.task_queue, "--address", address)
        async with running(*asked) as start:
            for step in (1, 2):
                line = await said(start)
                (row,) = await pending(client.get_workflow_handle(id), 1)
                command = f"perdure approve {id} {row['call']} --by NAME --address {address}"
                assert line == f"waiting   refund waits: {command}", step
                await copied(line)
            done = await start.end()
        assert (done.code, done.out) == (0, "done\n")
        assert done.err.count("waiting   ") == 2
        assert ran == [("refund", 1), ("refund", 2)]


async def test_start_at_a_terminal_says_it_too(client: Client) -> None:
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), [])) as runs:
        id = new_id()
        command = ("start", "shop", "go", "--id", id, "--task-queue", runs.task_queue, "--address", address_of(client))
        async with in_a_terminal("-m", "perdure.cli", *command, TERM="xterm", COLUMNS="120", LINES="30") as terminal:
            await terminal.shows('call      refund {"n": 1')
            await terminal.shows(f"waiting   refund waits: perdure approve {id} 1.1-")
            handle = client.get_workflow_handle(id)
            (row,) = await pending(handle, 1)
            await update(handle, "approve", {"call": row["call"]})
            await terminal.shows("done")
            assert await terminal.end() == 0
        assert terminal.shown.count("refund waits") == 1


async def test_start_names_the_run_below(client: Client) -> None:
    app = firm(Script({"ask_clerk": {"prompt": "x"}}, "done"), Script({"refund": {"n": 1}}, "refunded"), [])
    async with working(client, app) as runs:
        id = new_id()
        where = ("--id", id, "--task-queue", runs.task_queue)
        async with running("start", "boss", "go", *where, address=address_of(client)) as start:
            line = await said(start)
            (child,) = await children(client, client.get_workflow_handle(id))
            assert line.startswith(f"waiting   refund waits: perdure approve {child.id} 1.1-")
            await copied(line, address=address_of(client))
            assert (await start.end()).out == "done\n"


async def test_a_result_from_outside_is_given_by_what_start_prints(client: Client) -> None:
    ship = ToolDefinition(name="ship", description="Ship it.", parameters_json_schema={"type": "object"})
    script = Script({"ship": {}}, "shipped")
    agent = Agent(script.model, name="shipper", toolsets=[ExternalToolset([ship], id="ship")])
    async with working(client, App(agents=[DurableAgent(agent)])) as runs:
        id = new_id()
        where = ("--id", id, "--task-queue", runs.task_queue)
        async with running("start", "shipper", "go", *where, address=address_of(client)) as start:
            line = await said(start)
            assert line.startswith(f"waiting   ship waits: perdure complete {id} 1.1-")
            assert line.endswith(" --result JSON")
            await copied(line, address=address_of(client))
            assert (await start.end()).out == "shipped\n"


async def test_tail_says_it_once_over_a_lost_connection(client: Client) -> None:
    script = Script({"refund": {"n": 1}}, "done")
    async with working(client, shop(script, [])) as runs, proxy(address_of(client)) as wire:
        handle = await runs.start("shop", "go", **SESSION)
        (row,) = await pending(handle, 1)
        async with running("tail", handle.id, "--json", address=wire.address) as tail:
            assert await said(tail) == f"waiting   refund waits: perdure approve {handle.id} {row['call']}"
            wire.cut()
            await tail.line("is away: trying again")
            await wire.mend()
            await update(handle, "approve", {"call": row["call"]})
            await closed(handle)
            done = await tail.end()
        assert done.err.count("refund waits") == 1


async def test_send_says_it(client: Client) -> None:
    async with working(client, shop(Script("hello", {"refund": {"n": 1}}, "done"), [])) as runs:
        handle = await runs.start("shop", "hi", **SESSION)
        async with running("send", handle.id, "pay", address=address_of(client)) as send:
            await copied(await said(send), address=address_of(client))
            assert (await send.end()).out == "done\n"
        await closed(handle)


async def test_inbox_prints_commands_and_cuts_no_key(client: Client) -> None:
    address = address_of(client)
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), [], Approval(approvers=["ann"]))) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        listed = (await perdure("inbox", address=address, COLUMNS="60")).out.splitlines()
        (line,) = [line for line in listed if line.startswith("waiting") and handle.id in line]
        assert line == f"waiting   refund waits: perdure approve {handle.id} {row['call']} --by NAME"
        assert [one for one in listed if handle.id in one and row["call"] in one and '{"n": 1' in one]
        refused = await perdure("approve", handle.id, row["call"], address=address)
        assert (refused.code, refused.err.count("\n")) == (1, 0)
        assert f"say who you are in 'by' (`--by NAME`) to decide call {row['call']!r}" in refused.err
        await copied(line, address=address)
        await handle.result()


def test_two_calls_of_one_key_in_two_runs_below_are_told_apart() -> None:
    row: dict[str, Any] = {"call": "1.1-a", "kind": "approval", "tool": "refund", "args": {}, "verifies": False}
    lines = [decision("top", row | {"workflow_id": f"top/{n}"}) for n in (1, 2)]
    assert lines == [f"refund waits: perdure approve top/{n} 1.1-a" for n in (1, 2)]
    assert decision("a b", row) == "refund waits: perdure approve 'a b' 1.1-a"
    assert decision("top", row | {"approvers": ["ann"], "verifies": True}).endswith("approve top 1.1-a")
    assert decision("top", row | {"needed": 2}).endswith("1.1-a --by NAME")
    limit = {"call": "limit-1", "kind": "limit", "tool": "", "args": {"limit": "cost", "needed": "2"}}
    assert decision("top", limit).endswith(": perdure set-limits top --limit cost=2")
