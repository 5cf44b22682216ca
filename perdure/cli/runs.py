"""`perdure list`: the runs of a namespace."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Address, AsJson, Namespace, Profile


def runs(
    agent: Annotated[str | None, typer.Option(help="Only runs of this agent.")] = None,
    status: Annotated[str | None, typer.Option(help="Only runs in this state: running, completed, failed, …")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The latest so many.")] = 50,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """List runs, the latest first. Needs no worker."""
    filters = {"AgentName": agent, "ExecutionStatus": status.title().replace("_", "") if status else None}
    query = " AND ".join(f"{name} = {json.dumps(value)}" for name, value in filters.items() if value)
    with one_line_errors():
        asyncio.run(_list(query, limit, as_json, {"address": address, "namespace": namespace, "profile": profile}))


async def _list(query: str, limit: int, as_json: bool, where: dict[str, str | None]) -> None:
    from rich.table import Table

    from perdure.cli.text import console, printable
    from perdure.client import connect

    found = await (await connect(**where)).list(query, limit=limit)
    if as_json:
        print(json.dumps([asdict(run) for run in found], indent=2, default=lambda time: time.isoformat()))
        return
    table = Table("id", "agent", "status", "started (UTC)", box=None, pad_edge=False)
    for run in found:
        table.add_row(printable(run.id), printable(run.agent), run.status, f"{run.started:%Y-%m-%d %H:%M:%S}")
    console(sys.stdout).print(table if found else "no runs")
