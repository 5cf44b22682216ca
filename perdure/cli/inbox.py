"""`perdure inbox`: what waits for people, over all runs."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Address, AsJson, Namespace, Profile

if TYPE_CHECKING:
    from perdure.client import PerdureClient

FOR_HELP = "Only what this name, or group:NAME, may decide. May be repeated."
MAY_WAIT = '(AgentStatus = "waiting" OR AgentStatus IS NULL)'
"""Runs that were started without the search attribute may wait, too."""
MAX_RUNS = 500
"""Running runs that are asked."""
AT_ONCE = 10
PATIENCE = (2.0, 3.0)
"""Seconds for each try of a run's query: one run without a worker must not hold up the others."""


def inbox(
    name: Annotated[list[str] | None, typer.Option("--for", help=FOR_HELP)] = None,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """List every call that waits for a decision or a result, of all runs. Their workers must be running."""
    with one_line_errors():
        rows = asyncio.run(_waiting({"address": address, "namespace": namespace, "profile": profile}))
    rows = [row for row in rows if not name or _asks(row, name)]
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        _print(rows)


async def _waiting(where: dict[str, str | None]) -> list[dict[str, Any]]:
    from perdure.cli.connecting import connect

    client = await connect(**where)
    slots = asyncio.Semaphore(AT_ONCE)

    async def ask(id: str) -> list[dict[str, Any]]:
        async with slots:
            return await _pending(client, id)

    return [row for rows in await asyncio.gather(*map(ask, await _running(client))) for row in rows]


async def _pending(client: PerdureClient, id: str) -> list[dict[str, Any]]:
    """What waits in a run; where no worker answers, a line on stderr instead."""
    from perdure.client import ClientError

    try:
        rows = await client.run(id, query_timeouts=PATIENCE).pending()
        return [{"run": id, **row} for row in rows if row.get("workflow_id", id) == id]  # others show it themselves
    except ClientError as error:
        print(f"{id}: {error}", file=sys.stderr)
        return []


async def _running(client: PerdureClient) -> list[str]:
    """Runs that wait, by search attribute where it is registered, else all that run."""
    from temporalio.service import RPCError

    try:
        waiting = await client.list(MAY_WAIT, status="running", limit=MAX_RUNS + 1)
    except RPCError:
        waiting = await client.list(status="running", limit=MAX_RUNS + 1)
    if len(waiting) > MAX_RUNS:
        print(f"only the latest {MAX_RUNS} runs that may wait were asked", file=sys.stderr)
    return [run.id for run in waiting[:MAX_RUNS]]


def _asks(row: dict[str, Any], names: list[str]) -> bool:
    approvers = row.get("approvers", [])
    return not approvers or any(name in approvers for name in names)


def _print(rows: list[dict[str, Any]]) -> None:
    """A table, and the command that settles each of its rows."""
    from perdure.cli.text import console, styled, table
    from perdure.cli.waits import decision

    out = console(sys.stdout)
    if not rows:
        out.print("nothing waits")
        return
    headers = ("run", "call", "waits for", "tool", "arguments", "expires")
    cells = [
        (row["run"], row["call"], row["kind"], row["tool"], json.dumps(row["args"]), row["expires_at"] or "")
        for row in rows
    ]
    out.print(table(headers, cells, ("run", "call", "tool")))
    out.print()
    for row in rows:
        out.print(styled("waiting", decision(row["run"], row)))
