"""`perdure check`: what an App declares, as its worker would serve it. Needs no server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.cli.contracts import compare, export_of, write
from perdure.cli.exits import one_line_errors
from perdure.cli.options import AsJson, Target

if TYPE_CHECKING:
    from rich.table import Table

    from perdure import App
    from perdure.contracts import Json

HEADERS = ("tool", "effect", "attempts", "timeout", "waits for", "arguments", "what it does")
MORE_TOOLS = "more may be known only in a run: of MCP servers, dynamic toolsets, capabilities"


def check(
    target: Target,
    as_json: AsJson = False,
    contracts: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the JSON Schemas of all tools, with their versions.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Say what has changed since such a file; exit code 1 where it breaks something."
        ),
    ] = None,
) -> None:
    """Check an App and print its agents and tools. Building the App is the check: a fault is one line, exit code 2."""
    from perdure.cli.worker import load

    with one_line_errors():
        app = load(target)
    if contracts is None and against is None:
        _show(app, target, as_json)
        return
    if contracts is not None and against is not None and contracts.resolve() == against.resolve():
        raise typer.BadParameter("--contracts would write over what --against reads: give another file")
    exported = export_of(app)
    if contracts is not None:
        write(contracts, exported)
    if against is not None:
        compare(against, exported, as_json=as_json)


def _show(app: App, target: str, as_json: bool) -> None:
    from perdure.cli.declared import describe_agent

    agents = [describe_agent(durable) for durable in app.agents.values()]
    if as_json:
        print(json.dumps({"app": target, "agents": agents}, indent=2))
    else:
        for agent in agents:
            _print(agent)


def _print(agent: Json) -> None:
    from perdure.cli.text import console, plain, styled

    out = console(sys.stdout)
    out.print(styled("agent", " ".join(filter(None, (agent["name"], agent["version"])))))
    for label in ("model", "models", "output", "params", "limits", "on_limit"):
        if agent[label]:
            out.print(styled(label, plain(agent[label])))
    rows = [_row(tool) for tool in agent["tools"]]
    if rows:
        out.print(_narrow(rows) if out.is_terminal else _wide(rows))
    if not agent["all_tools_known"]:
        out.print(styled("tools", MORE_TOOLS))
    for pattern, toolsets in agent["judged_in_a_run"].items():
        where = f"it may be for a tool of {', '.join(toolsets)}"
        out.print(styled("policy", f"policy {pattern!r} can be judged only in a run: {where}"))
    out.print()


def _narrow(rows: list[list[str]]) -> Table:
    """For a terminal: what a policy says in one column, a line each."""
    from rich.box import HEAVY_HEAD

    from perdure.cli.text import table

    folded = [[name, "\n".join(filter(None, policy)), args, does] for name, *policy, args, does in rows]
    return table(("tool", "policy", "arguments", "what it does"), folded, ("tool",), box=HEAVY_HEAD)


def _wide(rows: list[list[str]]) -> Table:
    """A line for each tool."""
    from perdure.cli.text import table

    lines = [[" · ".join(filter(None, map(str.strip, cell.splitlines()))) for cell in row] for row in rows]
    return table(HEADERS, lines, HEADERS)


def _row(tool: Json) -> list[str]:
    timeout = "no timeout" if tool["timeout"] is None else f"{tool['timeout']:g} s"
    does = "\n".join(filter(None, (tool["description"], tool["served_by"])))
    attempts = f"{tool['attempts']} attempt{'' if tool['attempts'] == 1 else 's'}"
    return [tool["name"], tool["effect"], attempts, timeout, tool["waits_for"], _arguments(tool["schema"]), does]


def _arguments(schema: Json | None) -> str:
    """The arguments of a tool with their types, one a line."""
    properties: Json = (schema or {}).get("properties", {})
    required = (schema or {}).get("required", [])
    rows = ((name, value, "" if name in required else "?") for name, value in properties.items())
    return "\n".join(f"{name}{optional}: {_type(value)}" for name, value, optional in rows)


def _type(schema: Json) -> str:
    if "anyOf" in schema:
        return " | ".join(_type(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    name = str(schema.get("type") or schema.get("$ref", "any").rsplit("/", 1)[-1])
    return f"{name} of {_type(schema['items'])}" if name == "array" and schema.get("items") else name
