"""What waits is decided: here at the terminal, unless somebody is faster elsewhere."""

import asyncio
import json
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

from perdure.client import NoAnswer, Refused, RunClosed, RunHandle
from perdure.contracts import Decided

from .demo_facts import Row, may_decide, moment, who
from .demo_person import Answer, Person
from .demo_terminal import say

LOOK_EVERY = 0.3
"""Seconds between two looks whether somebody has decided elsewhere."""
DECISIONS = ("approved", "denied", "expired")


async def decide(run: RunHandle, row: Row, person: Person) -> None:
    """Ask until what waits is decided, here or elsewhere; the first decision that arrives counts."""
    while True:
        answer = await _first(run, row, person)
        if answer is None:
            return await _elsewhere(run, row)
        try:
            decided = await _send(run, row["call"], answer)
            return say(f"  {decided.outcome} by {answer.by}")
        except RunClosed:
            return await _elsewhere(run, row)
        except Refused as error:
            if error.type in ("AlreadyDecided", "NotPending"):
                return await _elsewhere(run, row)
            if person.away:
                raise
            say(f"  Refused: {error.message}")


async def _first(run: RunHandle, row: Row, person: Person) -> Answer | None:
    """The person's answer; `None` where something was decided elsewhere before there was one."""
    asked = asyncio.create_task(person.answer(row))
    elsewhere = asyncio.create_task(_gone(run, row["call"]))
    try:
        await asyncio.wait({asked, elsewhere}, return_when=asyncio.FIRST_COMPLETED)
        return await (asked if asked.done() else elsewhere)
    finally:
        asked.cancel()
        elsewhere.cancel()
        await asyncio.gather(asked, elsewhere, return_exceptions=True)


async def _gone(run: RunHandle, call: str) -> None:
    """Wait until a call waits no more."""
    while True:
        try:
            if call not in [row["call"] for row in await run.pending()]:
                return
        except NoAnswer as error:
            say(f"  {error}")
        await asyncio.sleep(LOOK_EVERY)


async def _elsewhere(run: RunHandle, row: Row) -> None:
    """Say who decided, as the run's audit knows it."""
    place = row["call"].partition("-")[0]  # the rest of a key changes with edited arguments
    rows = [each for each in await run.audit() if each["event"] in DECISIONS]
    rows = [each for each in rows if each["call"].partition("-")[0] == place]
    say(f"  Decided elsewhere: {rows[-1]['event']}{who(rows[-1])}" if rows else "  The run ended without a decision.")


async def _send(run: RunHandle, call: str, answer: Answer) -> Decided:
    if answer.verb == "deny":
        return await run.deny(call, by=answer.by, reason=answer.reason)
    return await run.approve(call, by=answer.by, args=answer.args)


def show(run: RunHandle, row: Row, person: Person, address: str, ui: str | None) -> None:
    """What waits, and where else it can be decided."""
    command, quoted = _command(), f"{row['call']} --by {shlex.quote(person.name)} --address {address}"
    edit = shlex.quote(json.dumps(row["args"]))
    say(f"  The run waits for approval of {row['tool']} {json.dumps(row['args'])}")
    say(f"    call      {row['call']}")
    say(f"    who       {may_decide(row['approvers'])}; a name is a claim")
    say(f"    until     {moment(row['expires_at']) if row['expires_at'] else 'somebody decides'}")
    say("  Decide it here, or elsewhere: in the Web UI, or by one of these in another terminal")
    say(f"    Web UI    {ui}/namespaces/default/workflows/{run.id}")
    say(f"    approve   {command} approve {run.id} {quoted}")
    if row["allow_edit"]:
        say(f"    edit      {command} approve {run.id} {quoted} --args {edit}")
    say(f"    deny      {command} deny {run.id} {quoted} --reason 'why not'")


def _command() -> str:
    """How the command of this environment is called from this folder."""
    program = Path(sysconfig.get_path("scripts")) / "perdure"
    if not program.is_file():
        return f"{shlex.quote(sys.executable)} -m perdure.cli"
    if shutil.which("perdure") == str(program):
        return "perdure"
    here = Path.cwd()
    return shlex.quote(str(program.relative_to(here) if program.is_relative_to(here) else program))
