"""`perdure chat` at a terminal. Without one: test_chat_piped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from temporalio.client import Client

from tests.command import address_of, new_id, perdure
from tests.deciding import pending, update
from tests.harness import Handle, until, working
from tests.live import Stammer, heard, holding
from tests.scripts import Script
from tests.sessions import SESSION, turn
from tests.shop import shop
from tests.terminal import Terminal, in_a_terminal

READY = "/help says what can be typed"


@asynccontextmanager
async def chatting(
    client: Client, agent: str, id: str, queue: str, *options: str, term: str = "xterm"
) -> AsyncGenerator[Terminal]:
    """A chat in a terminal."""
    where = ("--id", id, "--task-queue", queue, "--address", address_of(client))
    command = ("-m", "perdure.cli", "chat", agent, *where, *options)
    async with in_a_terminal(*command, TERM=term, COLUMNS="100", LINES="30") as terminal:
        await terminal.shows(READY)
        yield terminal


async def left(terminal: Terminal, id: str) -> None:
    """Leave a chat; it says how to come back."""
    terminal.type("/quit\n")
    await terminal.shows(f"--id {id}")
    assert await terminal.end() == 0, terminal.shown


async def over(handle: Handle, state: str, **query: Any) -> None:
    """Wait for the end of a turn."""
    assert (await turn(handle, **query))["state"] == state


async def test_a_message_its_answer_and_coming_back(client: Client) -> None:
    id = new_id()
    async with working(client, shop(Script({"look": {"n": 1}}, "seen", heard), [])) as runs:
        async with chatting(client, "shop", id, runs.task_queue, "--by", "ann") as terminal:
            terminal.type("lok\x7fok at it\n")
            await terminal.shows("user      look at it")
            await terminal.shows('call      look {"n": 1}')
            await terminal.shows("returned  look → saw 1")
            await terminal.shows("model     seen")
            await left(terminal, id)
        async with chatting(client, "shop", id, runs.task_queue) as terminal:
            await terminal.shows("model     seen")
            terminal.type("more\n")
            await terminal.shows("model     heard more")
            terminal.type("/close\n")
            await terminal.shows(f"has ended: perdure show {id}")
            assert await terminal.end() == 0
        entries = (await client.get_workflow_handle(id).query("transcript"))["entries"]
        assert [entry.get("by") for entry in entries if entry["kind"] == "user"] == ["ann", None]
        ended = await perdure("chat", "shop", "--id", id, address=address_of(client))
        assert (ended.code, ended.err) == (1, f"Error: run {id!r} has ended: see `perdure show {id}`")


async def test_approvals_are_answered_in_place(client: Client) -> None:
    id, ran = new_id(), list[Any]()
    script = Script(*({"refund": {"n": n}} for n in (1, 2, 3)), "done")
    async with working(client, shop(script, ran)) as runs:
        async with chatting(client, "shop", id, runs.task_queue, "--by", "ann") as terminal:
            terminal.type("go\n")
            await terminal.shows('asks      refund {"n": 1,')
            await terminal.shows("y/n?")
            terminal.type("perhaps\n")
            await terminal.shows("y or n, with a reason behind it")
            terminal.type("y she is right\n")
            await terminal.shows("decided   approved 1.1-")
            await terminal.shows('asks      refund {"n": 2,')
            terminal.type("n\n")
            await terminal.shows("why not?")
            terminal.type("too much\n")
            await terminal.shows("decided   denied 2.1-")
            await terminal.shows('asks      refund {"n": 3,')
            terminal.type("n never\n")
            await terminal.shows("decided   denied 3.1-")
            await terminal.shows("model     done")
            await left(terminal, id)
        assert ran == [("refund", 1)]
        audit = await client.get_workflow_handle(id).query("audit")
        decided = [
            (row["event"], row["by"], row.get("reason")) for row in audit if row["event"] in ("approved", "denied")
        ]
        assert decided == [
            ("approved", "ann", "she is right"),
            ("denied", "ann", "too much"),
            ("denied", "ann", "never"),
        ]


async def test_what_is_decided_elsewhere_is_asked_no_more_and_a_draft_is_kept(client: Client) -> None:
    id, ran = new_id(), list[Any]()
    script = Script({"refund": {"n": 1}}, "done", heard)
    async with working(client, shop(script, ran)) as runs:
        async with chatting(client, "shop", id, runs.task_queue) as terminal:
            terminal.type("go\ndr")  # a message that is being written when the question comes
            await terminal.shows("user      go")
            handle: Handle = client.get_workflow_handle(id)
            (row,) = await pending(handle, 1)
            await terminal.shows("y/n?")
            await update(handle, "approve", {"call": row["call"]})
            await terminal.shows("decided elsewhere")
            await until(lambda: "model     done" in terminal.shown)
            terminal.type("y\n")
            await terminal.shows("model     heard dry")
            await left(terminal, id)
        assert ran == [("refund", 1)]


async def test_a_question_is_answered_by_its_number_or_in_words(client: Client) -> None:
    id = new_id()
    script = Script(
        {"ask_user": {"question": "Which one?", "choices": ["red", "blue"]}},
        {"ask_user": {"question": "Why?"}},
        "fine",
    )
    async with working(client, holding(script, asyncio.Event())) as runs:
        async with chatting(client, "holder", id, runs.task_queue) as terminal:
            terminal.type("paint\n")
            await terminal.shows("question  Which one?")
            await terminal.shows("2  blue")
            terminal.type("green\n")
            await terminal.shows("refused")
            await terminal.shows("question  Which one?")
            terminal.type("2\n")
            await terminal.shows("returned  ask_user → blue")
            await terminal.shows("question  Why?")
            terminal.type("like the sky\n")
            await terminal.shows("returned  ask_user → like the sky")
            await terminal.shows("model     fine")
            await left(terminal, id)


async def test_a_running_turn_is_steered_queued_behind_and_interrupted(client: Client) -> None:
    id, release = new_id(), asyncio.Event()
    script = Script({"hold": {}}, heard, heard, {"hold": {}}, heard, {"hold": {}}, heard)
    async with working(client, holding(script, release)) as runs:
        async with chatting(client, "holder", id, runs.task_queue) as terminal:
            terminal.type("one\n")
            await terminal.shows("tool:hold: half done")
            terminal.type("two\n")
            await terminal.shows("queued    two (waits for its turn)")
            terminal.type("/steer three\n")
            await terminal.shows("queued    three (joins the running turn)")
            release.set()
            await terminal.shows("model     heard three")
            await terminal.shows("model     heard two")
            release.clear()
            terminal.type("four\n")
            await terminal.shows("tool:hold: half done")
            terminal.type("/interrupt five\n")
            await terminal.shows("model     heard five")
            assert "ended     interrupted: another message" in terminal.shown
            terminal.type("six\n")
            await terminal.shows("tool:hold: half done")
            terminal.type("\x03")
            await terminal.shows("Ctrl-C once more leaves")
            await terminal.shows("ended     interrupted: the turn was interrupted")
            terminal.type("//seven\n")
            await terminal.shows("model     heard /seven")
            terminal.type("\x03")
            await terminal.shows("Ctrl-C once more leaves")
            terminal.type("\x03")
            assert await terminal.end() == 130, terminal.shown
            assert f"perdure chat holder --id {id}" in terminal.shown
        await update(client.get_workflow_handle(id), "close", {})


async def test_text_of_a_request_that_is_tried_again_is_never_doubled(client: Client) -> None:
    id, stammer = new_id(), Stammer()
    async with working(client, stammer.app) as runs:
        async with chatting(client, "stammer", id, runs.task_queue) as terminal:
            terminal.type("go\n")
            await terminal.shows("model_request: one two")
            stammer.breaks.set()
            await terminal.shows("model_request (attempt 2): one two")
            stammer.ends.set()
            await terminal.shows("model     one two three")
            await left(terminal, id)
    assert "one two one" not in terminal.shown
    assert terminal.shown.count("model     one two three") == 1


async def test_a_session_that_is_closed_elsewhere_ends_the_chat(client: Client) -> None:
    async with working(client, shop(Script("hello"), [])) as runs:
        handle = await runs.start("shop", "hi", **SESSION)
        async with chatting(client, "shop", handle.id, runs.task_queue) as terminal:
            await terminal.shows("model     hello")
            await update(handle, "close", {})
            await terminal.shows("has ended")
            assert await terminal.end() == 0


async def test_a_dumb_terminal_will_do(client: Client) -> None:
    id = new_id()
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), [])) as runs:
        async with chatting(client, "shop", id, runs.task_queue, term="dumb") as terminal:
            terminal.type("go\n")
            await terminal.shows('asks      refund {"n": 1,')
            terminal.type("y\n")
            await terminal.shows("model     done")
            terminal.type("\x04")
            assert await terminal.end() == 0
    assert "\x1b[" not in terminal.raw


async def test_what_a_model_says_cannot_command_the_terminal(client: Client) -> None:
    id = new_id()
    async with working(client, shop(Script("red \x1b[31m alert \u202e"), [])) as runs:
        async with chatting(client, "shop", id, runs.task_queue) as terminal:
            terminal.type("hi\n")
            await terminal.shows("red \\u001b[31m alert \\u202e")
            assert "\x1b[31m alert" not in terminal.raw
            await left(terminal, id)
