"""`perdure export`: the whole transcript of a run, as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from perdure.cli.exits import one_line_errors
from perdure.cli.files import write_file
from perdure.cli.options import Address, Namespace, Profile, RunId


def export(
    id: RunId,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to. Default: stdout.")] = None,
    lines: Annotated[bool, typer.Option("--jsonl", help="A line per entry with its index, as `tail --json`.")] = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Write the whole transcript of a run, running or ended, as JSON. A worker must be running."""
    where = {"address": address, "namespace": namespace, "profile": profile}
    with one_line_errors():
        text = asyncio.run(_export(where, id, lines))
    if output is None:
        sys.stdout.write(text)
        return
    write_file(output, text)


async def _export(where: dict[str, str | None], id: str, lines: bool) -> str:
    from perdure.cli.connecting import connect

    run = (await connect(**where)).run(id)
    described = await run.describe()
    first, entries = await run.kept()
    if lines:
        rows = enumerate(entries, first)
        return "".join(json.dumps({"index": index, "entry": entry}) + "\n" for index, entry in rows)
    about = {
        "id": id,
        "agent": described.agent,
        "status": described.status,
        "started": described.started.isoformat(),
        "closed": described.closed.isoformat() if described.closed else None,
        "first": first,
    }
    return json.dumps({**about, "transcript": entries}, indent=2) + "\n"
