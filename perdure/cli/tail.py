"""`perdure tail`: a run as it goes on, from any place in its transcript."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Address, Namespace, Profile, RunId

if TYPE_CHECKING:
    from perdure.client import Progress

FROM_HELP = "Show entries from this index on: that of the last one you have, and one more. Default: from the start."


def tail(
    id: RunId,
    start: Annotated[int, typer.Option("--from", min=0, metavar="N", help=FROM_HELP)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON per entry, with its index.")] = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Show the transcript of a run and what comes until the run ends, a session until it is closed.

    Each entry once and none left out, whatever happens to the connection and to the workers meanwhile.
    """
    where = {"address": address, "namespace": namespace, "profile": profile}
    with one_line_errors():
        asyncio.run(_tail(where, id, start, as_json))


async def _tail(where: dict[str, str | None], id: str, start: int, as_json: bool) -> None:
    from perdure.cli.connecting import connect
    from perdure.cli.display import Display
    from perdure.cli.options import command
    from perdure.cli.waits import Waits
    from perdure.client import NoAnswer

    run = (await connect(**where)).run(id)
    progress: Progress | None = None
    with Display(sys.stdout, whole=None, live=not as_json) as display:
        waits = Waits(display, id)
        try:
            async for progress in run.follow(start=start):
                if as_json:
                    _print(progress)
                display.show(progress, entries=not as_json)
                waits.see(progress)
                sys.stdout.flush()
        except asyncio.CancelledError:
            after = progress.next if progress else start
            display.note("run", f"goes on without you: {command('tail', id, '--from', str(after))}")
            raise
    if progress and not progress.answered:
        raise NoAnswer(
            f"the run has ended, but not all of it could be read: {progress.why}. Go on with "
            f"`{command('tail', id, '--from', str(progress.next))}`"
        )


def _print(progress: Progress) -> None:
    for index, entry in enumerate(progress.entries, progress.start):
        print(json.dumps({"index": index, "entry": entry}))
