"""`perdure show`: what became of a run, and its transcript."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Address, AsJson, Namespace, Profile, RunId

if TYPE_CHECKING:
    from perdure.client import RunHandle, RunSummary
    from perdure.contracts import Json, StatusView


def show(
    id: RunId,
    audit: Annotated[bool, typer.Option("--audit", help="Who decided what, instead of the transcript.")] = False,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Show the state and the transcript of a run, whether it goes on or has ended. A worker must be running."""
    where = {"address": address, "namespace": namespace, "profile": profile}
    with one_line_errors():
        asyncio.run(_audit(id, as_json, where) if audit else _show(id, as_json, where))


async def _audit(id: str, as_json: bool, where: dict[str, str | None]) -> None:
    from perdure.cli.connecting import connect
    from perdure.cli.text import audit_line, console, styled

    rows = await (await connect(**where)).run(id).audit()
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    out = console(sys.stdout)
    for row in rows:
        out.print(styled(*audit_line(row)))
    if not rows:
        out.print("nothing was asked")


async def _show(id: str, as_json: bool, where: dict[str, str | None]) -> None:
    from perdure.cli.connecting import connect

    run = (await connect(**where)).run(id)
    described = await run.describe()
    status, entries = await run.status(), await run.transcript()
    ended, unserved = await _ended(run, described), await run.unserved()
    if as_json:
        row = {"id": id, "status": described.status, "unserved": unserved, **ended}
        print(json.dumps({**row, "view": status.model_dump(mode="json"), "transcript": entries}, indent=2))
    else:
        _print(described, status, entries, ended, unserved)


async def _ended(run: RunHandle, described: RunSummary) -> Json:
    """The result or failure of a run that has ended."""
    from perdure.client import RunFailed

    if described.closed is None:
        return {}
    try:
        return {"output": (await run.result()).output}
    except RunFailed as error:
        return {"failure": {"type": error.type, "message": error.message}}


def _print(described: RunSummary, status: StatusView, entries: list[Json], ended: Json, unserved: list[str]) -> None:
    from perdure.cli.text import console, entry_lines, plain, styled
    from perdure.cli.waits import decision

    out = console(sys.stdout)
    out.print(styled("run", f"{described.id} · {described.status} · started {described.started:%Y-%m-%d %H:%M:%S} UTC"))
    out.print(styled("agent", " · ".join(filter(None, (status.agent, status.version, status.model)))))
    usage = status.usage
    cost = f" · {usage.cost} USD" if usage.cost is not None else ""
    tokens = f"{usage.input_tokens} + {usage.output_tokens} tokens"
    counts = f"{usage.requests} requests · {usage.tool_calls} tool calls"
    out.print(styled("usage", f"turn {status.turn} · step {status.step} · {counts} · {tokens}{cost}"))
    out.print()
    for entry in entries:
        for label, text in entry_lines(entry):
            out.print(styled(label, text))
    for call in status.open_calls:
        out.print(styled("running", f"{call['tool']} {plain(call['args'])}"))
    for row in status.pending:
        out.print(styled("waiting", decision(described.id, row)))
    for line in unserved:
        out.print(styled("waiting", line))
    for warning in status.warnings:
        out.print(styled("warning", warning))
    if "output" in ended:
        out.print(styled("output", plain(ended["output"])))
    if "failure" in ended:
        out.print(styled("failed", f"{ended['failure']['type']}: {ended['failure']['message']}"))
