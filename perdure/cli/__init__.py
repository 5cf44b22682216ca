"""The `perdure` command. Needs the extra `cli`; without it says so in one line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.cli.root import app as app


def main(args: list[str] | None = None) -> None:
    """Run the command with `args`; without them, with those of the command line.

    Always ends with `SystemExit`; the codes are in `perdure/cli/exits.py`.
    """
    try:
        from perdure.cli.root import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print("perdure: the command line needs typer and rich: pip install 'perdure[cli]'", file=sys.stderr)
        raise SystemExit(1) from None
    app(args=args, prog_name="perdure")


def __getattr__(name: str) -> Any:
    if name == "app":
        from perdure.cli.root import app

        return app
    raise AttributeError(f"module 'perdure.cli' has no attribute {name!r}")
