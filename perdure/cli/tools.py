"""`perdure tools`: the tools of an App's agents as models see them, or as Python. Needs no server."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Target

if TYPE_CHECKING:
    from pydantic_ai.tools import ToolDefinition

    from perdure import App

MORE_TOOLS = "More may be known only in a run: of MCP servers, dynamic toolsets, capabilities."
NO_TOOLS = "None is known without a run, which lists them: of MCP servers, dynamic toolsets, capabilities."


def tools(
    target: Target,
    agent: Annotated[str | None, typer.Argument(help="Only those of this agent.")] = None,
    face: Annotated[Literal["python", "json"], typer.Option("--as", help="Signatures, or JSON Schemas.")] = "python",
) -> None:
    """Print the tools that are known without a run: Python signatures with docstrings, or JSON Schemas."""
    from perdure.cli.worker import load

    with one_line_errors():
        app = load(target)
    if agent is not None and agent not in app.agents:
        raise typer.BadParameter(f"no agent is named {agent!r}. Known agents: {sorted(app.agents)}")
    _print(app, [agent] if agent is not None else list(app.agents), face)


def _print(app: App, names: list[str], face: str) -> None:
    from perdure.checks.known import static_tools
    from perdure.toolsets.describe import as_json

    known = {name: static_tools(app.agents[name]) for name in names}
    if face == "json":
        print(json.dumps({name: as_json(tools.values()) for name, (tools, _) in known.items()}, indent=2))
        for name, (_, complete) in known.items():
            if not complete:
                print(f"perdure: agent {name!r}: {MORE_TOOLS}", file=sys.stderr)
        return
    print("\n\n".join(_page(name, tools, complete) for name, (tools, complete) in known.items()))


def _page(name: str, tools: dict[str, ToolDefinition], complete: bool) -> str:
    """The tools of an agent as Python, and as comments what is to be said of them."""
    from perdure.toolsets.describe import as_python

    more = "" if complete else f"# {MORE_TOOLS if tools else NO_TOOLS}"
    parts = [as_python(tools.values()).rstrip()] if tools else []
    parts += [more or ("" if tools else "# none")]
    return "\n\n".join(filter(None, [f"# Tools of agent {name!r}", *parts]))
