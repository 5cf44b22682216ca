"""Writes under a root folder that the system, another writer or the root itself stands against."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure import DeclarationError
from perdure.toolsets import folder
from perdure.toolsets.folder import Folder
from perdure.toolsets.paths import MAX_PARTS, MAX_PATH, FolderError
from tests.folders import WAYS

NOBODY = 65534


@contextmanager
def somebody() -> Generator[Path]:
    """An empty folder, and the rights of a user who isn't root: root may write what is read-only."""
    with tempfile.TemporaryDirectory() as name:
        own = os.geteuid()
        if own == 0:
            os.chown(name, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield Path(name)
        finally:
            os.seteuid(own)


def test_a_read_only_file_keeps_its_marks_and_its_mode() -> None:
    """Its owner may replace it, and a repeated patch has to find the mark of the first."""
    with somebody() as root:
        files = Folder(root)
        files.write("f", b"one", mark="a")
        if files.marks("f") is None:
            pytest.skip("this disk keeps no extended attributes")
        os.chmod(root / "f", 0o444)
        files.write("f", b"two", mark="b")
        assert files.marks("f") == ["a", "b"]
        assert (root / "f").stat().st_mode & 0o7777 == 0o444


def test_set_uid_is_not_handed_to_the_one_who_writes(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"one")
    os.chmod(tmp_path / "f", 0o7755)
    Folder(tmp_path).write("f", b"two")
    assert (tmp_path / "f").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.ENOTSUP])
def test_a_write_whose_mark_is_not_kept_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Unless the disk keeps none at all: then `marks` tells so."""
    files = Folder(tmp_path)
    files.write("f", b"one")
    disk_keeps = code != errno.ENOTSUP
    if disk_keeps and files.marks("f") is None:
        pytest.skip("this disk keeps no extended attributes")

    def refuse(*_: Any) -> bytes:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "setxattr", refuse)
    if disk_keeps:
        with pytest.raises(FolderError, match="'f' may not be written: the note of which call did it can't be kept"):
            files.write("f", b"two", mark="m")
        assert (files.read("f"), os.listdir(tmp_path)) == (b"one", ["f"])
        assert files.write("f", b"three") == "changed"
    else:
        monkeypatch.setattr(os, "getxattr", refuse)
        assert (files.write("f", b"two", mark="m"), files.marks("f")) == ("changed", None)


@pytest.mark.parametrize("root", ["", ".", "here", Path("here"), None, 5, "~nobody-has-this/x", "/a\0b"], ids=repr)
def test_a_root_that_is_not_absolute_is_refused(root: Any) -> None:
    with pytest.raises(DeclarationError) as refused:
        Folder(root)
    assert str(refused.value) == f"root={root!r} must be the absolute path of a folder, as str or Path"


def test_a_home_is_absolute() -> None:
    assert Folder("~/x").root == Path.home() / "x"


@pytest.mark.parametrize("way", [*WAYS, Folder.names])
def test_a_path_has_an_end(tmp_path: Path, way: Callable[[Folder, str], object]) -> None:
    for path in ("a/" * MAX_PARTS + "f", "é" * (MAX_PATH // 2) + "f", "./" * MAX_PATH + "f", "a/" * 20_000 + "f"):
        with pytest.raises(FolderError, match=r"too long|too deep") as refused:
            way(Folder(tmp_path), path)
        assert len(str(refused.value)) < 300
    assert os.listdir(tmp_path) == []
    files = Folder(tmp_path)
    assert files.write("a/" * (MAX_PARTS - 1) + "f", b"deep") == "created"


def test_a_writer_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "PATIENCE", 0.0)
    files = Folder(tmp_path)
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        for write in (lambda: files.write("f", b"x"), lambda: files.delete("f")):
            with pytest.raises(FolderError, match="'f' can't be written now: somebody else is writing there"):
                write()
        fcntl.flock(held, fcntl.LOCK_UN)
        assert files.write("f", b"x") == "created"
    finally:
        os.close(held)


def test_what_may_not_be_written_is_told() -> None:
    with somebody() as root:
        files = Folder(root)
        files.write("d/f", b"one")
        os.chmod(root / "d", 0o555)
        for path, write in (
            ("d/f", lambda: files.write("d/f", b"two")),
            ("d/g", lambda: files.write("d/g", b"two")),
            ("d/e/f", lambda: files.write("d/e/f", b"two")),
            ("d/f", lambda: files.delete("d/f")),
        ):
            with pytest.raises(FolderError, match=f"'{path}' may not be written: Permission denied"):
                write()
        assert files.read("d/f") == b"one"
        os.chmod(root / "d", 0o755)


@pytest.mark.parametrize("code", [errno.EROFS, errno.EDQUOT, errno.ENOSPC, errno.ENOENT, errno.EIO])
@pytest.mark.parametrize("call", ["mkdir", "rename", "unlink"])
def test_only_a_disk_that_fails_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, call: str
) -> None:
    files = Folder(tmp_path)
    files.write("there", b"x")

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, refuse)
    kind = OSError if code == errno.EIO else FolderError
    text = {errno.EIO: os.strerror(errno.EIO), errno.ENOENT: "there is no '"}.get(code, "may not be written: ")
    with pytest.raises(kind, match=text):
        files.delete("there") if call == "unlink" else files.write("d/f", b"x")
