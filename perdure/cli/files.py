"""Files that commands write."""

from __future__ import annotations

import os
from pathlib import Path

import typer


def write_file(file: Path, text: str) -> None:
    """All of it or nothing: a file that is there stays as it is until the new one is whole.

    Raises `typer.BadParameter`, with the reason, where it can't be written.
    """
    try:
        _replace(file, text)
    except (OSError, ValueError) as error:  # a ValueError where the path has no name to write under
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise typer.BadParameter(f"{file} can't be written: {reason}") from None


def _replace(file: Path, text: str) -> None:
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
