"""Marks that come with the content of a file, so that a write and the note of who made it are one: extended attributes.

Linux keeps them on most disks; elsewhere there are none.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

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


def keep_marks(file: int, marks: Sequence[str]) -> bool:
    """Put the marks on an open file, if there are any. False where they weren't kept: on a disk that keeps none, or is
    full."""
    kept = [mark for mark in marks if mark][-MOST:]
    if not kept:
        return True
    try:
        os.setxattr(file, ATTRIBUTE, " ".join(kept).encode())
    except (AttributeError, OSError):  # macOS has no such function
        return False
    return True
