"""Paths under a root folder: what may be one, and what the system's refusals of one mean. For `folder`."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager

MAX_PATH = 4096
"""Bytes of a path, as Linux has it."""
MAX_PARTS = 100
"""Folders that a path leads through, and its last name."""
UNWRITABLE = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EDQUOT, errno.ENOSPC, errno.EFBIG, errno.EMLINK),
    *(errno.EBUSY, errno.ETXTBSY, errno.ENOLCK, errno.ENOTSUP),
}
"""Rights, quotas, full and read-only disks; mount points; disks that keep no locks."""


class FolderError(Exception):
    """What was asked isn't there, isn't a plain file, or isn't under the root. The text is for the model."""


def parts_of(path: str) -> list[str]:
    """The names a path consists of. Raises `FolderError` for one that could lead out, or is too long."""
    if len(path.encode(errors="replace")) > MAX_PATH:
        raise FolderError(f"{path[:100]!r}… is too long: a path may have {MAX_PATH} bytes")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith(("/", "~")) or ".." in parts or "\0" in path or not _encodes(path):
        raise FolderError(f"{path!r} must be relative to the root folder, without '..'")
    if len(parts) > MAX_PARTS:
        raise FolderError(f"{path[:100]!r}… leads too deep: a path may have {MAX_PARTS} parts")
    return parts


def check_git(parts: list[str], path: str) -> None:
    """Raise `FolderError` for a path in a git repository's own files: its config and hooks name programs that git runs.

    In any case of the letters, as some disks see no difference."""
    if any(part.casefold() == ".git" for part in parts):
        raise FolderError(f"{path!r} belongs to git, which runs what is written there: it may not be changed")


def _encodes(path: str) -> bool:
    try:
        return bool(path.encode()) or not path
    except UnicodeEncodeError:
        return False


def refusal(error: OSError, path: str, name: str) -> FolderError:
    """What the model is told of an error of the system. Raises the error where it isn't one of the path."""
    match error.errno:
        case errno.ENOENT:
            return FolderError(f"there is no {path!r}")
        case errno.ELOOP:
            return FolderError(f"{path!r}: {name!r} is a link, and links aren't followed")
        case errno.ENOTDIR:
            return FolderError(f"{path!r}: {name!r} isn't a folder, or is a link, and links aren't followed")
        case errno.EISDIR:
            return FolderError(f"{path!r} is a folder")
        case errno.ENAMETOOLONG:
            return FolderError(f"{path[:100]!r}… is too long a name")
        case errno.EACCES | errno.EPERM | errno.ENXIO:
            return FolderError(f"{path!r} may not be opened")
        case _:
            raise error


@contextmanager
def writing(path: str, name: str) -> Generator[None]:
    """What the system refuses meanwhile is told as a `FolderError`; a disk that fails stays an `OSError`."""
    try:
        yield
    except OSError as error:
        if error.errno in UNWRITABLE:
            raise FolderError(f"{path!r} may not be written: {error.strerror}") from None
        raise refusal(error, path, name) from None
