"""Marks that come with the content of a file, so that a write and the note of who made it are one: extended attributes.

Linux keeps them on most disks; elsewhere there are none.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import suppress

ATTRIBUTE = "user.perdure.calls"
MOST = 30
"""Marks of one file: the latest."""


def marks_of(file: int) -> list[str] | None:
    """The marks of an open file; `None` where this disk keeps none."""
    if not hasattr(os, "getxattr"):
        return None
    try:
        return os.getxattr(file, ATTRIBUTE).decode().split()
    except OSError as error:
        return [] if error.errno == errno.ENODATA else None


def keep_marks(file: int, marks: Sequence[str]) -> None:
    """Put the marks on an open file, where the disk keeps such."""
    kept = [mark for mark in marks if mark][-MOST:]
    if kept and hasattr(os, "setxattr"):
        with suppress(OSError):  # `marks_of` will tell
            os.setxattr(file, ATTRIBUTE, " ".join(kept).encode())
