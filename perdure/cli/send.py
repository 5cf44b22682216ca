"""`perdure send`, `interrupt` and `close`: what a session is told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Address, AsJson, Namespace, Profile, RunId

if TYPE_CHECKING:
    from perdure.client import RunHandle
    from perdure.contracts import TurnView

WhenBusy = Literal["queue", "steer", "interrupt"]
"""`perdure.contracts.WhenBusy`, which imports too much for `--help`."""
BUSY_HELP = "While a turn runs: wait for one of its own, join the running one, or end it."
ID_HELP = "Of your own making: sent again with it, the message changes nothing. Default: made up."
By = Annotated[str, typer.Option(help="Who says so: a claim.")]
Reason = Annotated[str, typer.Option(help="Why.")]
Wait = Annotated[bool, typer.Option(help="Show the run and print the answer, or only the message's id.")]


def send(
    id: RunId,
    text: Annotated[str, typer.Argument(help="The message.")],
    when_busy: Annotated[WhenBusy, typer.Option(help=BUSY_HELP)] = "queue",
    message_id: Annotated[str | None, typer.Option(metavar="ID", help=ID_HELP)] = None,
    by: By = "",
    wait: Wait = True,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Send a message to a session, or to any run that goes on, and print the answer (--json: all of its turn)."""
    if not text.strip():
        raise typer.BadParameter("the message is empty")

    async def run() -> None:
        handle = await _listening(id, address, namespace, profile)
        start = await handle.length() if wait else 0
        sent = await handle.send(text, when_busy=when_busy, id=message_id, by=by)
        name = message_id or sent.messages[-1]
        if wait:
            await wait_for_answer(handle, name, start=start, as_json=as_json)
        else:
            print(sent.model_dump_json() if as_json else name)

    with one_line_errors():
        asyncio.run(run())


def interrupt(
    id: RunId,
    by: By = "",
    reason: Reason = "",
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """End the running turn of a session. The session goes on."""

    async def run() -> None:
        await (await _listening(id, address, namespace, profile)).interrupt(by=by, reason=reason)

    with one_line_errors():
        asyncio.run(run())
        print(f"interrupted {id}: its running turn ends, the session goes on")


def close(
    id: RunId,
    by: By = "",
    reason: Reason = "",
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Let a session end when the messages that wait have their answer. It takes no further ones."""

    async def run() -> None:
        await (await _listening(id, address, namespace, profile)).close(by=by, reason=reason)

    with one_line_errors():
        asyncio.run(run())
        print(f"closed {id}: it ends when the messages that wait have their answer")


async def _listening(id: str, address: str | None, namespace: str | None, profile: str | None) -> RunHandle:
    """The run, once it is clear that it goes on and that a worker answers: an update would wait for one, silently."""
    from perdure.cli.connecting import connect

    handle = (await connect(address=address, namespace=namespace, profile=profile)).run(id)
    await handle.check_open()
    await handle.status()
    return handle


async def wait_for_answer(run: RunHandle, message: str, *, start: int, as_json: bool = False) -> None:
    """Show a run from `start` on until a message of it has its answer, and print that. Raises `RunFailed`, if it has
    none."""
    from perdure.cli.display import Display
    from perdure.cli.options import command
    from perdure.cli.waits import Waits
    from perdure.cli.watching import Watch

    with Display() as display:
        try:
            async with Watch(run, display, start, see=Waits(display, run.id).see) as watch:
                turn = await run.wait_turn(message=message)
                await watch.has_shown_all()
        except asyncio.CancelledError:
            display.note("run", f"goes on without you: {command('tail', run.id)}")
            raise
    print_answer(run, turn, as_json)


def print_answer(run: RunHandle, turn: TurnView, as_json: bool = False) -> None:
    """Print the output of a turn. Raises `RunFailed` where it has none."""
    from perdure.cli.start import written
    from perdure.client import ClientError, RunFailed

    if as_json:
        print(turn.model_dump_json(indent=2))
    if turn.output is None:
        if turn.left_out:
            raise ClientError(f"the answer is no longer kept as such: see `perdure show {run.id}`")
        error = turn.error
        raise RunFailed(run.id, error.type if error else turn.state, error.message if error else "no answer")
    if not as_json:
        print(written(turn.output.value))
