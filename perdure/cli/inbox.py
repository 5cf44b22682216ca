"""`perdure inbox`: what waits for people, over all runs."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Address, AsJson, Namespace, Profile

if TYPE_CHECKING:
    from perdure.client import PerdureClient

MAX_RUNS = 500
"""Running runs that are asked."""


def inbox(
    as_json: AsJson = False, address: Address = None, namespace: Namespace = None, profile: Profile = None
) -> None:
    """List every call that waits for a decision or a result, of all runs. Their workers must be running."""
    with one_line_errors():
        rows = asyncio.run(_waiting({"address": address, "namespace": namespace, "profile": profile}))
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        _print(rows)


async def _waiting(where: dict[str, str | None]) -> list[dict[str, Any]]:
    from perdure.client import connect

    client = await connect(**where)
    found: list[dict[str, Any]] = []
    for id in await _running(client):
        found += [{"run": id, **row} for row in await client.run(id).pending()]
    return found


async def _running(client: PerdureClient) -> list[str]:
    """Runs that wait, by search attribute where it is registered, else all that run."""
    from temporalio.service import RPCError

    try:
        waiting = await client.list('AgentStatus = "waiting"', status="running", limit=MAX_RUNS)
    except RPCError:
        waiting = await client.list(status="running", limit=MAX_RUNS)
    return [run.id for run in waiting]


def _print(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from perdure.cli.text import console, printable

    table = Table("run", "call", "waits for", "tool", "arguments", "expires", box=None, pad_edge=False)
    for row in rows:
        cells = (row["run"], row["call"], row["kind"], row["tool"], json.dumps(row["args"]), row["expires_at"] or "")
        table.add_row(*(printable(cell) for cell in cells))
    console(sys.stdout).print(table if rows else "nothing waits")
