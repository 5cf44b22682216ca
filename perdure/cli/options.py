"""Options and arguments that several commands have."""

from __future__ import annotations

import json
import shlex
from contextvars import ContextVar
from typing import Annotated, Any

import typer

_WHERE: ContextVar[dict[str, str]] = ContextVar("where", default={})  # noqa: B039 (is replaced, never changed)
"""Options that name the server, as they were typed in this command."""


def _noted(context: typer.Context, parameter: typer.CallbackParam, value: str | None) -> str | None:
    """Remember what was typed. What comes from the environment is there for the next command, too."""
    source = context.get_parameter_source(parameter.name or "")
    others = {name: text for name, text in _WHERE.get().items() if name != parameter.opts[0]}
    typed = source is not None and source.name == "COMMANDLINE"
    _WHERE.set(others | ({parameter.opts[0]: value} if typed and value is not None else {}))
    return value


def command(*words: str) -> str:
    """A command of `perdure` for people to copy: it goes to the server that this one was told to use."""
    where = [word for pair in _WHERE.get().items() for word in pair]
    return shlex.join(["perdure", *words, *where])


TARGET_HELP = "Where the App is, as module:attribute, for example weather:app."

Target = Annotated[str, typer.Argument(metavar="MODULE:APP", help=TARGET_HELP)]
RunId = Annotated[str, typer.Argument(metavar="ID", help="The run's id, as `perdure start` printed it.")]
Call = Annotated[str, typer.Argument(metavar="CALL", help="The whole key of the call, as `perdure inbox` shows it.")]
Address = Annotated[
    str | None,
    typer.Option(
        envvar="TEMPORAL_ADDRESS",
        metavar="HOST:PORT",
        help="The Temporal server. Default: localhost:7233.",
        callback=_noted,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(envvar="TEMPORAL_NAMESPACE", help="The server's namespace. Default: default.", callback=_noted),
]
Profile = Annotated[
    str | None,
    typer.Option(envvar="TEMPORAL_PROFILE", help="A profile of Temporal's configuration file.", callback=_noted),
]
TaskQueue = Annotated[str | None, typer.Option(metavar="NAME", help="The workers' task queue. Default: perdure.")]
IdleTimeout = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Close the session when nothing was going on for so long: seconds, or as PT1H."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def json_option(option: str, text: str) -> Any:
    """The value of an option that is JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{option} isn't JSON: {error}") from None
