"""The `perdure` command and its subcommands. Imports nothing heavy: a subcommand does when it runs."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Annotated

import rich as _rich  # the other half of the extra: is it there?
import typer

from perdure.cli import (
    chat,
    check,
    decide,
    dev,
    export,
    inbox,
    runs,
    send,
    settings,
    setup,
    show,
    start,
    tail,
    token,
    tools,
    worker,
)

assert _rich

EPILOG = """Temporal's own environment configuration is used: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY,
TEMPORAL_TLS and its relatives, TEMPORAL_PROFILE, TEMPORAL_CONFIG_FILE. Large payloads go where PERDURE_PAYLOADS says:
file:///an/absolute/path or s3://bucket/prefix.

Exit codes: 0 done, 1 error, 2 wrong usage or declaration, 3 no Temporal server, 4 the run failed, or the turn,
5 no worker answered, 130 interrupted."""

app = typer.Typer(
    name="perdure",
    help="Durable Pydantic AI agents on Temporal. Results go to stdout, progress to stderr.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        under = ", ".join(f"{name} {version(name)}" for name in ("temporalio", "pydantic-ai-slim"))
        typer.echo(f"perdure {version('perdure')} ({under}, Python {platform.python_version()})")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the versions and exit.")
]


@app.callback()
def options(version: Version = False) -> None:
    """The options of `perdure` itself."""


app.command("dev")(dev.dev)
app.command("worker")(worker.worker)
app.command("start")(start.start)
app.command("chat")(chat.chat)
app.command("send")(send.send)
app.command("interrupt")(send.interrupt)
app.command("close")(send.close)
app.command("tail")(tail.tail)
app.command("export")(export.export)
app.command("show")(show.show)
app.command("list")(runs.runs)
app.command("inbox")(inbox.inbox)
app.command("approve")(decide.approve)
app.command("deny")(decide.deny)
app.command("complete")(decide.complete)
app.command("set-limits")(settings.set_limits)
app.command("set-model")(settings.set_model)
app.command("token")(token.token)
app.command("key")(token.key)
app.command("setup")(setup.setup)
app.command("check")(check.check)
app.command("tools")(tools.tools)
