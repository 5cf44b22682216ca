"""`perdure list`: the runs of a namespace."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Address, AsJson, Namespace, Profile

if TYPE_CHECKING:
    from perdure.client import RunSummary

Status = Literal["running", "completed", "failed", "canceled", "terminated", "timed_out", "continued_as_new", "paused"]
"""`perdure.client.RunStatus`, which imports too much for `--help`."""
UNKNOWN = "?"
"""The agent of a run that no worker has begun."""


def runs(
    agent: Annotated[str | None, typer.Option(help="Only runs of this agent that a worker has begun.")] = None,
    status: Annotated[Status | None, typer.Option(case_sensitive=False, help="Only runs in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The latest so many.")] = 50,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """List runs, the latest first. Needs no worker."""
    where = {"address": address, "namespace": namespace, "profile": profile}
    with one_line_errors():
        found = asyncio.run(_list(where, agent, status, limit))
    if as_json:
        print(json.dumps([asdict(run) for run in found], indent=2, default=lambda time: time.isoformat()))
    else:
        _print(found)


async def _list(where: dict[str, str | None], agent: str | None, status: Status | None, limit: int) -> list[RunSummary]:
    from perdure.cli.connecting import connect

    return await (await connect(**where)).list(agent=agent, status=status, limit=limit)


def _print(found: list[RunSummary]) -> None:
    from perdure.cli.text import console, table

    rows = [(run.id, run.agent or UNKNOWN, run.status, f"{run.started:%Y-%m-%d %H:%M:%S}") for run in found]
    made = table(("id", "agent", "status", "started (UTC)"), rows, ("id", "agent", "status"))
    console(sys.stdout).print(made if found else "no runs")
