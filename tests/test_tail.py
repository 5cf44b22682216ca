"""`perdure tail`, `send`, `interrupt`, `close`, `export`, `start --session`: sessions from the command line."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from tests.command import Command, address_of, free_port, perdure, running
from tests.deciding import pending, update
from tests.harness import Handle, until, working
from tests.live import Stammer
from tests.proxy import proxy
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed, runs_of, send
from tests.shop import shop
from tests.sites import Site
from tests.terminal import in_a_terminal


async def line(command: Command) -> dict[str, Any]:
    """The next line of JSON that a command prints."""
    assert command.process.stdout
    async with asyncio.timeout(60):
        return json.loads(await command.process.stdout.readline())


async def rest(command: Command) -> list[dict[str, Any]]:
    """The lines of JSON up to the end."""
    done = await command.end()
    assert done.code == 0, done.err
    return [json.loads(row) for row in done.out.splitlines()]


async def whole(handle: Handle) -> list[dict[str, Any]]:
    """What a reader should have got of a run."""
    page = await handle.query("transcript")
    return [{"index": index, "entry": entry} for index, entry in enumerate(page["entries"])]


async def test_tail_shows_each_entry_once_over_roll_overs(rolling_client: Client) -> None:
    script = Script("hello", *({"look": {"n": n}} for n in range(4)), "seen", "bye")
    async with working(rolling_client, shop(script, [])) as runs:
        handle = await runs.start("shop", "hi", **SESSION)
        async with running("tail", handle.id, "--json", address=address_of(rolling_client)) as tail:
            rows = [await line(tail)]
            assert await answered(handle, "look") == "seen"
            assert await answered(handle, "bye") == "bye"
            await closed(handle)
            rows += await rest(tail)
        assert rows == await whole(handle)
        assert await runs_of(handle) > 2
        shown = await perdure("tail", handle.id, "--from", "13", address=address_of(rolling_client))
        assert (shown.code, shown.out) == (0, "user      bye\nmodel     bye\n")


async def test_tail_goes_on_after_the_worker_is_killed(client: Client, tmp_path: Path) -> None:
    site = Site(client, tmp_path, f"crash-{uuid.uuid4().hex[:12]}")
    async with site.worker() as worker:
        handle = await site.start("safe")
        async with running("tail", handle.id, "--json", address=address_of(client)) as tail:
            rows = [await line(tail) for _ in range(3)]
            await until(lambda: len(site.rows("ran")) == 1)
            worker.send_signal(signal.SIGKILL)
            await worker.wait()
            site.release()
            async with site.worker():
                assert (await handle.result())["output"].startswith("success: safe ran")
                rows += await rest(tail)
                assert rows == await whole(handle)


async def test_tail_outlives_a_lost_connection(client: Client) -> None:
    async with working(client, shop(Script("a", "b", "c"), [])) as runs, proxy(address_of(client)) as wire:
        handle = await runs.start("shop", "1", **SESSION)
        async with running("tail", handle.id, "--json", address=wire.address) as tail:
            rows = [await line(tail) for _ in range(3)]
            wire.cut()
            assert await answered(handle, "2") == "b"
            await tail.line("is away: trying again")
            assert await answered(handle, "3") == "c"
            await wire.mend()
            rows += [await line(tail) for _ in range(4)]
            await closed(handle)
            rows += await rest(tail)
        assert rows == await whole(handle)


async def test_an_interrupted_tail_says_where_to_resume(client: Client) -> None:
    async with working(client, shop(Script("a", "b"), [])) as runs:
        handle = await runs.start("shop", "1", **SESSION)
        async with running("tail", handle.id, "--json", address=address_of(client)) as tail:
            rows = [await line(tail) for _ in range(3)]
            tail.send(signal.SIGINT)
            done = await tail.end()
        assert done.code == 130
        assert done.last == f"run       goes on without you: perdure tail {handle.id} --from 3"
        assert await answered(handle, "2") == "b"
        await closed(handle)
        again = await perdure("tail", handle.id, "--json", "--from", "3", address=address_of(client))
        assert rows + [json.loads(row) for row in again.out.splitlines()] == await whole(handle)


async def test_tail_at_a_terminal_never_doubles_the_text_of_a_request_that_is_tried_again(client: Client) -> None:
    stammer = Stammer()
    async with working(client, stammer.app) as runs:
        handle = await runs.start("stammer", "go")
        command = ("-m", "perdure.cli", "tail", handle.id, "--address", address_of(client))
        async with in_a_terminal(*command, TERM="xterm", COLUMNS="100", LINES="30") as terminal:
            await terminal.shows("model_request: one two")
            stammer.breaks.set()
            await terminal.shows("model_request (attempt 2): one two")
            stammer.ends.set()
            await terminal.shows("one two three")
            assert await terminal.end() == 0
    assert terminal.shown.count("model     one two three") == 1
    assert "one two one" not in terminal.shown


async def test_a_session_from_the_command_line(client: Client) -> None:
    address = address_of(client)
    script = Script("hello", "there", {"refund": {"n": 1}}, "again")
    async with working(client, shop(script, [])) as runs:
        id = f"session-{uuid.uuid4().hex[:8]}"
        asked = ("--id", id, "--session", "--task-queue", runs.task_queue)
        started = await perdure("start", "shop", "hi", *asked, address=address)
        assert (started.code, started.out) == (0, "hello\n"), started.err
        assert "user      hi" in started.err
        sent = await perdure("send", id, "you", "--message-id", "m", "--by", "ann", address=address)
        assert (sent.code, sent.out) == (0, "there\n"), sent.err
        assert [line for line in sent.err.splitlines() if not line.startswith("waiting")] == [
            "user      you",
            "model     there",
        ]
        again = await perdure("send", id, "you", "--message-id", "m", "--no-wait", address=address)
        assert (again.code, again.out) == (0, "m\n")
        handle = client.get_workflow_handle(id)
        await send(handle, "refund", id="r")
        await pending(handle, 1)
        ended = await perdure("interrupt", id, "--reason", "enough", address=address)
        assert (ended.code, ended.out) == (0, f"interrupted {id}: its running turn ends, the session goes on\n")
        failed = await perdure("send", id, "you", "--message-id", "r", address=address)
        assert (failed.code, failed.out) == (4, "")
        assert failed.last == "Interrupted: the turn was interrupted: enough"
        nothing = await perdure("interrupt", id, address=address)
        assert (nothing.code, len(nothing.err.splitlines())) == (1, 1)
        done = await perdure("close", id, address=address)
        assert done.code == 0
        await handle.result()
        late = await perdure("send", id, "late", address=address)
        assert (late.code, late.err) == (1, f"Error: run {id!r} has ended: see `perdure show {id}`")


async def test_export_is_the_whole_transcript_also_after_the_end(client: Client, tmp_path: Path) -> None:
    address = address_of(client)
    async with working(client, shop(Script({"look": {"n": 1}}, "seen"), [])) as runs:
        handle = await runs.start("shop", "hi")
        await handle.result()
        exported = json.loads((await perdure("export", handle.id, address=address)).out)
        assert (exported["id"], exported["agent"], exported["status"]) == (handle.id, "shop", "completed")
        rows = await whole(handle)
        assert exported["transcript"] == [row["entry"] for row in rows]
        file = tmp_path / "run.jsonl"
        done = await perdure("export", handle.id, "--jsonl", "--output", str(file), address=address)
        assert (done.code, done.out) == (0, "")
        assert [json.loads(row) for row in file.read_text().splitlines()] == rows
        assert os.listdir(tmp_path) == [file.name]
        nowhere = await perdure("export", handle.id, "--output", str(tmp_path / "no" / "x"), address=address)
        assert (nowhere.code, nowhere.out) == (2, "")


@pytest.mark.parametrize(
    "command", [["tail"], ["send", "hi"], ["interrupt"], ["close"], ["export"]], ids=lambda words: words[0]
)
async def test_a_run_that_is_not_there_is_one_line(client: Client, command: list[str]) -> None:
    name, *more = command
    done = await perdure(name, "nothing", *more, address=address_of(client))
    assert (done.code, done.out) == (1, "")
    (error,) = done.err.splitlines()
    assert error == "Error: there is no run 'nothing' in this namespace: `perdure list` shows the runs"
    nowhere = f"127.0.0.1:{free_port()}"
    assert (await perdure(name, "nothing", *more, address=nowhere)).code == 3


async def test_without_a_worker_nothing_is_sent(client: Client) -> None:
    id = f"alone-{uuid.uuid4().hex[:8]}"
    address = address_of(client)
    started = await perdure("start", "shop", "--session", "--id", id, "--task-queue", id, address=address)
    assert (started.code, started.out) == (0, f"{id}\n"), started.err
    done = await perdure("send", id, "hi", address=address)
    assert (done.code, done.out) == (5, "")
    (error,) = done.err.splitlines()
    assert error.startswith(f"Error: no worker polls task queue {id!r}")
    async with running("tail", id, address=address) as tail:
        assert (await tail.line("no worker polls")).startswith(f"waiting   no worker polls task queue {id!r}")
        await client.get_workflow_handle(id).terminate()
        ended = await tail.end()
    assert ended.code == 5
    assert ended.last.endswith(f"Go on with `perdure tail {id} --from 0`")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["send", "x", " "], "the message is empty"),
        (["start", "shop"], "the prompt is empty"),
        (["start", "shop", "--idle-timeout", "soon"], "neither seconds nor as in PT1H"),
    ],
)
async def test_wrong_usage_names_what_is_wrong(words: list[str], why: str) -> None:
    done = await perdure(*words)
    assert (done.code, done.out) == (2, "")
    assert why in done.err


async def test_an_idle_session_closes_by_itself(client: Client) -> None:
    async with working(client, shop(Script("hello"), [])) as runs:
        asked = ("--idle-timeout", "0.5", "--task-queue", runs.task_queue, "--id", f"idle-{uuid.uuid4().hex[:8]}")
        started = await perdure("start", "shop", "hi", *asked, address=address_of(client))
        assert started.out == "hello\n", started.err
        result = await client.get_workflow_handle(asked[-1]).result()
        assert result["output"] == "hello"


async def test_update_is_refused_in_one_line(client: Client) -> None:
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), [])) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        refused = await perdure("close", handle.id, address=address_of(client))
        assert refused.code == 1
        assert refused.err.startswith("Error: InvalidRequest: the run isn't a session")
        await update(handle, "approve", {"call": row["call"]})
        await handle.result()
