"""Options and arguments that several commands have."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

TARGET_HELP = "Where the App is, as module:attribute, for example weather:app."

Target = Annotated[str, typer.Argument(metavar="MODULE:APP", help=TARGET_HELP)]
RunId = Annotated[str, typer.Argument(metavar="ID", help="The run's id, as `perdure start` printed it.")]
Call = Annotated[str, typer.Argument(metavar="CALL", help="The whole key of the call, as `perdure inbox` shows it.")]
Address = Annotated[
    str | None,
    typer.Option(envvar="TEMPORAL_ADDRESS", metavar="HOST:PORT", help="The Temporal server. Default: localhost:7233."),
]
Namespace = Annotated[
    str | None, typer.Option(envvar="TEMPORAL_NAMESPACE", help="The server's namespace. Default: default.")
]
Profile = Annotated[
    str | None, typer.Option(envvar="TEMPORAL_PROFILE", help="A profile of Temporal's configuration file.")
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
