"""Files under a root folder, and nowhere else, whatever a path says and whoever changes the folder meanwhile.

A path is walked one name at a time from the root's open descriptor, each name opened without following links, so that
what was checked is what is used: no path is looked up a second time. Links are refused, not followed. POSIX.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from perdure.errors import DeclarationError, RootMissing
from perdure.toolsets.marks import keep_marks, marks_of
from perdure.toolsets.paths import FolderError, check_git, parts_of, refusal, writing

MAX_FILE = 10_000_000
"""Bytes of a file that is read or written."""
PATIENCE = 5.0
"""Seconds that a writer waits for another one in the same folder."""
MISSING = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP)
ROOT = "perdure_root"
"""The key in a tool's metadata: its root folder, where that is the same in every run."""
Written = Literal["created", "changed", "unchanged"]
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class Folder:
    """The files under `root`. The root itself is trusted, links in its own path are followed.

    Nothing in a `.git` is changed, unless `git` says so.

    Raises `DeclarationError` for a root that isn't the absolute path of a folder, `FolderError` for what is wrong with
    a path, `RootMissing` where the root isn't there, and `OSError` where the disk fails.
    """

    def __init__(self, root: object, *, git: bool = False) -> None:
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise DeclarationError("a root folder needs a POSIX system: this one can't open files relative to a folder")
        self.root = _root(root)
        self.git = git

    def read(self, path: str) -> bytes:
        """The content of a plain file."""
        with self._parent(path) as (parent, name):
            return _content(parent, name, path)

    def marks(self, path: str) -> list[str] | None:
        """The marks of the latest writes of a file; `None` where this disk keeps none."""
        with self._parent(path) as (parent, name):
            return _marks(parent, name, path)

    def write(
        self, path: str, data: bytes, *, expected: bytes | None = None, new: bool = False, mark: str = ""
    ) -> Written:
        """Put `data` in place of a file at once, readers see the old or the new; makes the folders it lies in.

        `expected` is what the file has to hold until then; a `new` one must not be there with other content. A link at
        its place is refused. `mark` comes with the content, as an extended attribute, where the disk keeps such.
        """
        if len(data) > MAX_FILE:
            raise FolderError(f"{path!r} would have {len(data)} bytes; a file may have {MAX_FILE}")
        with self._parent(path, write=True, create=True) as (parent, name):
            with writing(path, name), _locked(parent, path):
                mode = _mode(parent, name, path)
                current = None if mode is None else _content(parent, name, path)
                if expected is not None and current != expected:
                    raise FolderError(f"{path!r} has changed meanwhile: read it again")
                if current == data:
                    return "unchanged"
                if new and current is not None:
                    raise FolderError(f"{path!r} is there already, with other content")
                marks = ([] if mode is None else _marks(parent, name, path)) or []
                _replace(parent, name, path, data, 0o644 if mode is None else mode, [*marks, mark])
                return "created" if mode is None else "changed"

    def delete(self, path: str) -> bool:
        """Remove a plain file. False where there is none."""
        with self._parent(path, write=True) as (parent, name):
            with writing(path, name), _locked(parent, path):
                if _mode(parent, name, path) is None:
                    return False
                os.unlink(name, dir_fd=parent)
                return True

    def names(self, path: str = ".") -> list[str]:
        """What is in a folder, sorted: folders end with `/`, links with `@`."""
        with self._folder(parts_of(path), path) as folder, os.scandir(folder) as found:
            return sorted(f"{entry.name}{_mark(entry)}".encode(errors="replace").decode() for entry in found)

    def opened(self) -> int:
        """A descriptor of the root. Raises `RootMissing` where it isn't a folder that can be opened here."""
        try:
            return os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in MISSING:
                raise
            raise RootMissing(
                f"the root folder {str(self.root)!r} can't be used on this worker: {os.strerror(error.errno)}"
            ) from None

    @contextmanager
    def _parent(self, path: str, *, write: bool = False, create: bool = False) -> Generator[tuple[int, str]]:
        """The open folder that a file lies in, and the file's name."""
        *folders, name = parts = parts_of(path) or [""]
        if write and not self.git:
            check_git(parts, path)
        if not name:
            raise FolderError(f"{path!r} is the root folder, not a file")
        with self._folder(folders, path, create=create) as folder:
            yield folder, name

    @contextmanager
    def _folder(self, names: list[str], path: str, *, create: bool = False) -> Generator[int]:
        current = self.opened()
        try:
            for name in names:
                inner = _enter(current, name, path, create)
                os.close(current)
                current = inner
            yield current
        finally:
            os.close(current)


def _root(root: object) -> Path:
    """The root: never relative, which would be the folder that the worker happens to have been started in."""
    try:
        path = Path(root).expanduser() if isinstance(root, str | Path) else None
    except RuntimeError:  # nobody has this home
        path = None
    if path is None or not path.is_absolute() or "\0" in str(path):
        raise DeclarationError(f"root={root!r} must be the absolute path of a folder, as str or Path")
    return path


def _enter(folder: int, name: str, path: str, create: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise FolderError(f"there is no {path!r}") from None
    except OSError as error:
        raise refusal(error, path, name) from None
    with writing(path, name), suppress(FileExistsError):  # somebody was faster; what it is shows when it is opened
        os.mkdir(name, 0o755, dir_fd=folder)
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        raise refusal(error, path, name) from None


def _opened(parent: int, name: str, path: str) -> int:
    """The descriptor of a plain file, to be read."""
    try:
        opened = os.open(name, os.O_RDONLY | _FILE, dir_fd=parent)
    except OSError as error:
        raise refusal(error, path, name) from None
    if not stat.S_ISREG(os.fstat(opened).st_mode):  # a folder, pipe or device
        os.close(opened)
        raise FolderError(f"{path!r} isn't a plain file")
    return opened


def _marks(parent: int, name: str, path: str) -> list[str] | None:
    opened = _opened(parent, name, path)
    try:
        return marks_of(opened)
    finally:
        os.close(opened)


def _content(parent: int, name: str, path: str) -> bytes:
    with os.fdopen(_opened(parent, name, path), "rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise FolderError(f"{path!r} has more than {MAX_FILE} bytes")
    return data


def _mode(parent: int, name: str, path: str) -> int | None:
    """Who may do what with a plain file, without set-uid bits, which a new owner must not get; `None` where there is
    none."""
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refusal(error, path, name) from None
    if not stat.S_ISREG(mode):
        raise FolderError(f"{path!r} isn't a plain file")
    return mode & 0o777


def _replace(parent: int, name: str, path: str, data: bytes, mode: int, marks: list[str]) -> None:
    """Write a new file beside the old one and rename it: a rename follows no link."""
    beside = f".perdure-{secrets.token_hex(8)}.tmp"
    opened = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o600, dir_fd=parent)
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(data)
            file.flush()
            if not keep_marks(opened, marks) and marks_of(opened) is not None:  # before the mode takes the right away
                raise FolderError(f"{path!r} may not be written: the note of which call did it can't be kept")
            os.fchmod(opened, mode)
            os.fsync(opened)
        os.rename(beside, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):  # gone with its folder, say; what happened is told
            os.unlink(beside, dir_fd=parent)
        raise
    os.fsync(parent)


@contextmanager
def _locked(folder: int, path: str) -> Generator[None]:
    """One writer at a time in a folder, over all processes of this machine that go this way."""
    import fcntl

    until = time.monotonic() + PATIENCE  # not for ever: the thread can't be cancelled
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() >= until:
                raise FolderError(f"{path!r} can't be written now: somebody else is writing there") from None
            time.sleep(0.01)
    try:
        yield
    finally:
        fcntl.flock(folder, fcntl.LOCK_UN)


def _mark(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "@"
    return "/" if entry.is_dir(follow_symlinks=False) else ""
