"""`perdure chat`: talk with an agent, in a session that goes on when you leave."""

from __future__ import annotations

import asyncio
import sys
import uuid
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Address, IdleTimeout, Namespace, Profile, TaskQueue, command, json_option
from perdure.cli.start import session_of

if TYPE_CHECKING:
    from perdure.client import PerdureClient

RECENT = 20
"""Entries of a session that is resumed which are shown."""
WHOLE = ("user", "model", "asks", "question")
"""Labels of lines that are shown whole."""


def chat(
    agent: Annotated[str, typer.Argument(help="The agent's name.")],
    id: Annotated[
        str | None, typer.Option(help="Of a session: resumed, or started if there is none. Default: new.")
    ] = None,
    params: Annotated[str | None, typer.Option(metavar="JSON", help="What the agent's deps are made of.")] = None,
    model: Annotated[str | None, typer.Option(metavar="KEY", help="One of the agent's further models.")] = None,
    by: Annotated[str, typer.Option(help="Who you are: a claim, and recorded as one.")] = "",
    idle_timeout: IdleTimeout = None,
    task_queue: TaskQueue = None,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Talk with AGENT. What you leave goes on; --id brings you back. At a terminal /help says what can be typed.

    Without a terminal each line of stdin is a message, and each answer a line of stdout.
    """
    given = None if params is None else json_option("--params", params)
    asked: dict[str, Any] = {"agent": agent, "params": given, "model": model, "by": by or None}
    if task_queue:
        asked["task_queue"] = task_queue
    where = {"address": address, "namespace": namespace, "profile": profile}
    with one_line_errors():
        asked["session"] = session_of(idle_timeout)
        code = asyncio.run(_chat(where, id, asked))
    raise typer.Exit(code)


async def _chat(where: dict[str, str | None], id: str | None, asked: dict[str, Any]) -> int:
    from perdure.cli.attended import Attended
    from perdure.cli.chatting import Chat
    from perdure.cli.connecting import connect
    from perdure.cli.display import Display
    from perdure.cli.keyboard import Keyboard, Lines
    from perdure.cli.piped import piped

    client = await connect(**where)
    is_new, start = await _found(client, id, asked["agent"])
    run = client.run(id or f"{asked['agent']}-{uuid.uuid4().hex[:8]}")
    display = Display(whole=WHOLE)
    talk = Chat(client, run, display, asked, is_new=is_new)
    if not sys.stdin.isatty():
        with display, Lines() as lines:
            return await piped(talk, display, lines, start)
    lines = Keyboard(display.refresh) if display.is_lively else Lines()
    with lines, display:
        display.note("session", f"{run.id} · /help says what can be typed")
        if start:
            display.note("session", f"{start} earlier entries: {command('show', run.id)}")
        return await Attended(talk, display, lines).run(start)


async def _found(client: PerdureClient, id: str | None, agent: str) -> tuple[bool, int]:
    """Whether the session is new; else where to begin showing it. Raises `RunClosed` where it has ended."""
    from perdure.client import NoSuchRun

    if id is None:
        return True, 0
    run = client.run(id)
    try:
        await run.check_open()
    except NoSuchRun:
        return True, 0
    start = max(0, await run.length() - RECENT)
    if (found := (await run.status()).agent) != agent:
        raise typer.BadParameter(f"the session {id!r} is one with {found!r}")
    return False, start
