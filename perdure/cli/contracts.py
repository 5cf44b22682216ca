"""The contracts of an App's tools as a file: `perdure check --contracts`, and `--against` an older one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from perdure.cli.exits import FAILED
from perdure.cli.files import write_file

if TYPE_CHECKING:
    from perdure import App
    from perdure.contracts import Json
    from perdure.toolsets.changes import Change


def export_of(app: App) -> Json:
    """The tools of each agent that are known without a run: version, description, JSON Schemas."""
    from perdure.checks.known import static_tools
    from perdure.toolsets.changes import FORMAT
    from perdure.toolsets.contract import CONTRACT

    agents: Json = {}
    for name, durable in sorted(app.agents.items()):
        tools, complete = static_tools(durable)
        agents[name] = {"version": durable.version, "all_tools_known": complete, "tools": {}}
        for tool in tools.values():
            agents[name]["tools"][tool.name] = {
                "version": (tool.metadata or {}).get(CONTRACT, {}).get("version", ""),
                "description": tool.description or "",
                "input": tool.parameters_json_schema,
                "output": tool.return_schema or {},
            }
    return {"perdure_contracts": FORMAT, "agents": agents}


def write(file: Path, exported: Json) -> None:
    """Write an export, so that a file under version control shows what changed. Raises `typer.BadParameter`."""
    write_file(file, json.dumps(exported, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def compare(file: Path, exported: Json, *, as_json: bool) -> None:
    """Print what has changed since an older export. Ends with exit code 1 where something breaks."""
    from perdure.toolsets.changes import changes

    found = changes(_read(file), exported)
    if as_json:
        print(json.dumps({"changes": [vars(change) for change in found]}, indent=2))
    else:
        _print(found)
    if any(change.breaking for change in found):
        raise typer.Exit(FAILED)


def _read(file: Path) -> Json:
    from perdure.schemas import problems
    from perdure.toolsets.changes import EXPORT

    try:
        read: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise typer.BadParameter(f"--against: {file} can't be read: {error}") from None
    if wrong := problems(EXPORT, read):
        raise typer.BadParameter(f"--against: {file} isn't what this version's --contracts writes: {wrong}")
    return read


def _print(found: list[Change]) -> None:
    from perdure.cli.text import printable

    for change in found:
        where = " ".join(part for part in (change.agent, change.tool, change.at) if part)
        print(printable(f"{'breaking' if change.breaking else 'compatible'}: {where}: {change.what}"))
    broken = sum(change.breaking for change in found)
    said = f"{broken} breaking, {len(found) - broken} compatible" if found else "nothing has changed"
    print(f"perdure: {said}", file=sys.stderr)
