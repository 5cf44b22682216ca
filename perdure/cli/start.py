"""`perdure start`: start a run, and wait for its result."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Address, AsJson, IdleTimeout, Namespace, Profile, TaskQueue, json_option

if TYPE_CHECKING:
    from perdure.contracts import Session

FIRST = "prompt"
"""The id of the message that a run is started with."""


def start(
    agent: Annotated[str, typer.Argument(help="The agent's name.")],
    prompt: Annotated[str | None, typer.Argument(help="What to ask it. May be left out with --session.")] = None,
    params: Annotated[str | None, typer.Option(metavar="JSON", help="What the agent's deps are made of.")] = None,
    model: Annotated[str | None, typer.Option(metavar="KEY", help="One of the agent's further models.")] = None,
    id: Annotated[str | None, typer.Option(help="The run's id; must be new. Default: made up.")] = None,
    by: Annotated[str | None, typer.Option(help="Who starts it; may not approve where a policy forbids it.")] = None,
    session: Annotated[bool, typer.Option("--session", help="Keep it open for further messages.")] = False,
    idle_timeout: IdleTimeout = None,
    wait: Annotated[bool, typer.Option(help="Show the run as it goes on and print its output, or only its id.")] = True,
    as_json: AsJson = False,
    task_queue: TaskQueue = None,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Start a run of AGENT. Prints its output (text as it is, else JSON; --json: the whole result).

    Of a session it prints the first answer, and leaves it open; without a prompt, its id.
    """
    stays_open = session or idle_timeout is not None
    for name, text in (("agent", agent), ("prompt", prompt)):
        if not (text or "").strip() and not (text is None and stays_open):
            raise typer.BadParameter(f"the {name} is empty")
    given = None if params is None else json_option("--params", params)
    asked: dict[str, Any] = {"model": model, "id": id, "params": given, "by": by}
    if task_queue:
        asked["task_queue"] = task_queue
    where = {"address": address, "namespace": namespace, "profile": profile}
    with one_line_errors():
        if stays_open:
            asked["session"] = session_of(idle_timeout)
        asyncio.run(_start(where, agent, prompt, asked, wait=wait and prompt is not None, as_json=as_json))


async def _start(
    where: dict[str, str | None], agent: str, prompt: str | None, asked: dict[str, Any], *, wait: bool, as_json: bool
) -> None:
    from perdure.cli.connecting import connect

    client = await connect(**where)
    run = await client.start(agent, prompt, **asked)
    if not wait:
        print(json.dumps({"id": run.id}) if as_json else run.id)
        return
    if "session" in asked:
        from perdure.cli.send import wait_for_answer

        print(f"run       {run.id}", file=sys.stderr)
        await wait_for_answer(run, FIRST, start=0, as_json=as_json)
        return
    await _follow(run)
    result = await run.result()
    if as_json:
        print(result.model_dump_json(indent=2))
    else:
        print(written(result.output))


async def _follow(run: Any) -> None:
    """Show the run until it has ended."""
    from perdure.cli.display import Display
    from perdure.cli.options import command
    from perdure.cli.waits import Waits

    with Display() as display:
        display.note("run", run.id)
        waits = Waits(display, run.id)
        try:
            async for progress in run.follow():
                display.show(progress)
                waits.see(progress)
        except asyncio.CancelledError:
            display.note("run", f"goes on without you: {command('show', run.id)}")
            raise


def session_of(idle_timeout: str | None) -> Session:
    """What keeps a run open. The time in seconds, or as ISO 8601 writes it."""
    from perdure.contracts import Session

    seconds = re.fullmatch(r"\d+(\.\d+)?", idle_timeout or "")
    try:
        return Session.model_validate({"idle_timeout": float(seconds[0]) if seconds else idle_timeout})
    except ValueError:
        raise typer.BadParameter(f"--idle-timeout {idle_timeout!r} is neither seconds nor as in PT1H") from None


def written(output: Any) -> str:
    """An output for stdout: text as it is, else JSON."""
    from perdure.cli.text import printable

    if not isinstance(output, str):
        return json.dumps(output, indent=2, ensure_ascii=False)
    return printable(output) if sys.stdout.isatty() else output
