"""The demo: asked at a terminal, decided elsewhere, nobody there; and what it checks in the end."""

from __future__ import annotations

import asyncio
import getpass
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from examples.support.demo_facts import Row, audit_lines, disagreement, facts
from examples.support.store import Store
from tests.command import ROOT, free_port, listens
from tests.terminal import Terminal, in_a_terminal

DEMO = ("-m", "examples.support.demo")
USER = getpass.getuser()
QUESTION = "Approve this refund of $129.00 for order A-1002? [y/n/e(dit)] "
FAST = {"PERDURE_SUPPORT_DELAY": "0", "PERDURE_SUPPORT_TOOL_DELAY": "0"}
NOTHING_PAID = "What it left in the database:\n  no refund and no note\nThat is what was decided.\n"


def ports() -> list[str]:
    return ["--port", str(free_port()), "--ui-port", str(free_port())]


@asynccontextmanager
async def large_refund(*options: str, typed: str = "") -> AsyncGenerator[Terminal]:
    """The third question of the demo, in a terminal."""
    async with in_a_terminal(*DEMO, "--only", "approval", *ports(), *options, typed=typed, **FAST) as terminal:
        yield terminal


async def ends_with_enter(terminal: Terminal) -> None:
    """The demo keeps its server until Enter is pressed."""
    await terminal.shows("Press Enter to stop the server. ")
    terminal.type("\n")
    assert await terminal.end() == 0, terminal.shown


async def test_yes_pays_and_is_on_record() -> None:
    async with large_refund() as terminal:
        shown = await terminal.shows(QUESTION)
        assert 'The run waits for approval of refund {"order_id": "A-1002", "cents": 12900}' in shown
        assert "who       anybody may decide" in shown
        terminal.type("perhaps\n")
        await terminal.shows("Please answer one of [y/n/e(dit)].")
        await terminal.shows(QUESTION)
        terminal.type("y\n")
        await terminal.shows(f"approved by {USER}\n")
        await terminal.shows("refund  →  returned\n")
        await terminal.shows("answer: I refunded $129.00 for order A-1002 (refund R-1).\n")
        audit = await terminal.shows("What it left in the database:\n")
        assert [line.split()[1] for line in audit.splitlines() if line.startswith("  ")] == ["asked", "approved", "ran"]
        assert f"by {USER} (a claim) via update\n" in audit
        await terminal.shows("refund of $129.00 for order A-1002\n  note on order A-1002: Refunded $129.00")
        await terminal.shows("That is what was decided.\n")
        await ends_with_enter(terminal)


async def test_no_pays_nothing_and_the_customer_reads_why() -> None:
    async with large_refund(typed="y\n") as terminal:  # before the question: not an answer to it
        await terminal.shows(QUESTION)
        terminal.type("n\n")
        await terminal.shows("Why not? The customer is told: ")
        terminal.type("the keyboard has been used\n")
        await terminal.shows(f"denied by {USER}\n")
        await terminal.shows(
            "answer: The refund of $129.00 for order A-1002 was not approved: the keyboard has been used.\n"
        )
        await terminal.shows(f"by {USER} (a claim) via update: the keyboard has been used\n")
        await terminal.shows(NOTHING_PAID)
        await terminal.shows("Press Enter to stop the server. ")
        terminal.type("\x04")
        assert await terminal.end() == 0
        assert "Traceback" not in terminal.shown


async def test_edited_cents_are_checked_and_paid() -> None:
    async with large_refund() as terminal:
        for typed, refusal in (("half", "Input should be a valid integer"), ("99900", "99900 cents can't be refunded")):
            await edits(terminal, typed)
            assert refusal in await terminal.shows("\n")
        await edits(terminal, "10050")
        await terminal.shows(f"approved by {USER}\n")
        await terminal.shows(
            "answer: I refunded $100.50 for order A-1002 (refund R-1), of the $129.00 you asked for.\n"
        )
        await terminal.shows('{"order_id": "A-1002", "cents": 10050} instead of {"order_id": "A-1002", "cents": 12900}')
        await terminal.shows("refund of $100.50 for order A-1002\n  note on order A-1002: Refunded $100.50")
        await terminal.shows("That is what was decided.\n")
        await ends_with_enter(terminal)


async def edits(terminal: Terminal, cents: str) -> None:
    """Answer the question by other cents."""
    await terminal.shows(QUESTION)
    terminal.type("e\n")
    await terminal.shows("How many cents instead of 12900? ")
    terminal.type(f"{cents}\n")
    await terminal.shows(f"{cents}\n")  # the terminal's echo


async def test_a_decision_elsewhere_withdraws_the_question() -> None:
    port = free_port()
    async with large_refund("--port", str(port)) as terminal:
        shown = await terminal.shows(QUESTION)
        (command,) = [line.partition("approve   ")[2] for line in shown.splitlines() if "   approve   " in line]
        env = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
        done = await asyncio.to_thread(
            subprocess.run, [*shlex.split(command), "--reason", "I know her"], cwd=ROOT, env=env, capture_output=True
        )
        assert done.returncode == 0, done.stderr
        await terminal.shows(f"Decided elsewhere: approved by {USER} (a claim) via update: I know her\n")
        await terminal.shows("answer: I refunded $129.00 for order A-1002 (refund R-1).\n")
        await terminal.shows("That is what was decided.\n")
        await terminal.shows("Press Enter to stop the server. ")
        terminal.type("\x03")
        assert await terminal.end() == 130
        assert "Traceback" not in terminal.shown
        assert not listens(port)


async def test_a_question_that_nobody_answers_is_denied() -> None:
    async with large_refund("--timeout", "0.5") as terminal:
        await terminal.shows(QUESTION)
        shown = await terminal.shows("it denies.\n")
        assert "\n  Nobody answered within 0.5 s. In production the run would go on waiting until 20" in shown
        await terminal.shows("denied by demo\n")
        await terminal.shows("was not approved: nobody was there to decide.\n")
        await terminal.shows(NOTHING_PAID)
        assert await terminal.end() == 0
        assert "Press Enter" not in terminal.shown


async def test_without_a_terminal_the_whole_demo_runs_and_approves_nothing() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *DEMO, *ports()),
        cwd=ROOT,
        env=os.environ | {"PERDURE_SUPPORT_DELAY": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    out, _ = await process.communicate()
    shown = out.decode()
    assert process.returncode == 0, shown
    expected = [
        "answer: Order A-1004 (Electric kettle), placed on September 1, is shipped.",
        "ended by SIGKILL",
        "answer: I refunded $89.90 for order A-1003 (refund R-1).",
        "the database holds 1 refund and 1 note",
        "Nobody can be asked: standard input isn't a terminal.",
        "answer: The refund of $129.00 for order A-1002 was not approved: nobody was there to decide.",
        "no refund and no note",
        "That is what was decided.",
    ]
    places = [shown.find(text) for text in expected]
    assert -1 not in places, shown
    assert places == sorted(places)
    assert QUESTION not in shown


async def test_a_taken_port_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *DEMO, "--port", port), cwd=ROOT, stderr=subprocess.PIPE
        )
        _, error = await process.communicate()
    assert process.returncode == 1
    (line,) = error.decode().splitlines()
    assert line.startswith(f"Error: port {port} can't be used")


def test_what_the_database_holds_has_to_be_what_was_decided(tmp_path: Path) -> None:
    def row(event: str, call: str, **more: Any) -> Row:
        return {"event": event, "call": call, "tool": "refund", "at": "2026-11-30T10:00:00+00:00", **more}

    asked = [row("asked", f"1.{n}", args={"order_id": f"A-100{n}", "cents": 4000}) for n in (1, 2, 3)]
    by = {"by": "ann", "claimed": True, "via": "signal"}
    edited = {"args": {"order_id": "A-1002", "cents": 3000}, "original_args": asked[1]["args"], "new_call": "1.2-b"}
    decided = [row("approved", "1.1", **by), row("edited", "1.2", **by, **edited), row("approved", "1.2-b", **by)]
    decided += [row("denied", "1.3", reason="no")]
    audit = [*asked, *decided]
    store = Store.open(tmp_path / "support.db")
    assert disagreement(audit, facts(store.path)).startswith("approved were [('A-1001', 4000), ('A-1002', 3000)], paid")
    for order_id, cents in (("A-1001", 4000), ("A-1002", 3000)):
        store.refund(order_id, cents, key=order_id)
        store.add_note(order_id, "paid", key=order_id)
    before = facts(store.path)
    assert disagreement(audit, before) == ""
    store.add_note("A-1001", "paid", key="again")
    assert disagreement(audit, facts(store.path)).endswith("noted were {'A-1001': 2, 'A-1002': 1}")
    store.refund("A-1003", 4000, key="denied")
    assert disagreement(audit, facts(store.path)).endswith("('A-1002', 3000), ('A-1003', 4000)]")
    assert list(facts(store.path).since(before).lines()) == [
        "refund of $40.00 for order A-1003",
        "note on order A-1001: paid",
    ]
    assert next(line for line in audit_lines(decided) if "1.2" in line).partition("  ")[2] == (
        'edited    refund 1.2 by ann (a claim) via signal, {"order_id": "A-1002", "cents": 3000} '
        'instead of {"order_id": "A-1002", "cents": 4000}'
    )
