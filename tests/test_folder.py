"""Files under a root folder: no path and no change of the folder leads out of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.toolsets.folder import MAX_FILE, Folder
from perdure.toolsets.paths import FolderError
from tests.folders import OUTSIDE, WAYS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a file, beside it a file that nothing may reach, and links to that."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(OUTSIDE)
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "inside").write_bytes(b"inside")
    (root / "link").symlink_to(tmp_path / "outside" / "secret")
    (root / "relative").symlink_to("../outside/secret")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "sub" / "up").symlink_to("../../outside")
    (root / "dangling").symlink_to(tmp_path / "outside" / "new")
    os.mkfifo(root / "pipe")
    return root


def outside(root: Path) -> list[tuple[str, bytes]]:
    """What is beside the root."""
    return sorted((path.name, path.read_bytes()) for path in (root.parent / "outside").iterdir())


ESCAPES = [
    *("../outside/secret", "/etc/passwd", "~/x", "sub/../../outside/secret", "sub/..", "link", "relative"),
    *("folder/secret", "folder/new/deep", "sub/up/secret", "dangling", "pipe", ".", "", "sub", "a\0b", "\ud800"),
    *("sub/inside/deeper", "x" * 300, "folder"),
]


@pytest.mark.parametrize("way", WAYS, ids=["read", "write", "delete"])
@pytest.mark.parametrize("path", ESCAPES, ids=ascii)
def test_s2_type_07_no_path_leads_out(root: Path, path: str, way: Callable[[Folder, str], object]) -> None:
    with pytest.raises(FolderError):
        way(Folder(root), path)
    assert outside(root) == [("secret", OUTSIDE)]
    assert (root / "link").is_symlink()
    assert not [name for name in os.listdir(root) if name.startswith(".perdure")]


@pytest.mark.parametrize("path", ["folder", "sub/up", "..", "/etc"])
def test_a_folder_that_is_a_link_is_not_listed(root: Path, path: str) -> None:
    with pytest.raises(FolderError):
        Folder(root).names(path)


def test_what_is_there_is_listed_with_its_kind(root: Path) -> None:
    assert Folder(root).names() == ["dangling@", "folder@", "link@", "pipe", "relative@", "sub/"]
    assert Folder(root).names("sub/") == ["inside", "up@"]


def test_a_write_is_told_by_what_it_changed(root: Path) -> None:
    files = Folder(root)
    assert files.write("new/deep/file", b"one") == "created"
    os.chmod(root / "new/deep/file", 0o755)
    before = (root / "new/deep/file").stat().st_ino
    assert files.write("new/deep/file", b"one") == "unchanged"
    assert (root / "new/deep/file").stat().st_ino == before
    assert files.write("new/deep/file", b"two") == "changed"
    assert (root / "new/deep/file").stat().st_mode & 0o777 == 0o755
    assert files.write("new/deep/file", b"two", new=True) == "unchanged"
    with pytest.raises(FolderError, match="is there already"):
        files.write("new/deep/file", b"three", new=True)
    with pytest.raises(FolderError, match="has changed meanwhile"):
        files.write("new/deep/file", b"three", expected=b"one")
    assert files.read("new/deep/file") == b"two"
    assert os.listdir(root / "new/deep") == ["file"]
    assert files.delete("new/deep/file")
    assert not files.delete("new/deep/file")


def test_a_hard_link_is_replaced_and_what_it_shared_stays(root: Path) -> None:
    os.link(root.parent / "outside" / "secret", root / "hard")
    assert Folder(root).write("hard", b"mine") == "changed"
    assert outside(root) == [("secret", OUTSIDE)]


def test_what_is_too_large_is_refused(root: Path) -> None:
    (root / "large").write_bytes(b"x" * (MAX_FILE + 1))
    with pytest.raises(FolderError, match="has more than"):
        Folder(root).read("large")
    with pytest.raises(FolderError, match="would have"):
        Folder(root).write("large", b"x" * (MAX_FILE + 1))


def test_a_root_that_is_gone_is_no_fault_of_the_model(root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Folder(root / "gone").read("x")


@pytest.mark.parametrize("way", WAYS, ids=["read", "write", "delete"])
def test_a_folder_that_becomes_a_link_meanwhile_leads_nowhere(root: Path, way: Callable[[Folder, str], object]) -> None:
    """Another process turns a folder into a link and back all the time: what is opened is the folder or nothing."""
    turns, found = 0, set[object]()

    def turn() -> None:
        nonlocal turns
        while turns < 500:
            try:
                os.rename(root / "sub", root / "aside" / str(turns))
                os.symlink(root.parent / "outside", root / "sub")
                os.unlink(root / "sub")
                os.mkdir(root / "sub")
            except FileExistsError:  # a write has made the folder that it missed
                pass
            turns += 1

    (root / "aside").mkdir()
    thread = threading.Thread(target=turn)
    thread.start()
    while thread.is_alive():
        try:
            found.add(way(Folder(root), "sub/secret"))
        except FolderError:
            found.add("refused")
    assert turns == 500
    assert found
    assert OUTSIDE not in found
    assert outside(root) == [("secret", OUTSIDE)]


def test_what_is_open_stays_what_it_was(root: Path) -> None:
    """The same without chance: the folder is exchanged after it was opened."""
    with Folder(root)._parent("sub/inside") as (parent, name):  # pyright: ignore[reportPrivateUsage]
        os.rename(root / "sub", root / "aside")
        os.symlink(root.parent / "outside", root / "sub")
        assert (sorted(os.listdir(parent)), name) == (["inside", "up"], "inside")
    with pytest.raises(FolderError, match="is a link"):
        Folder(root).read("sub/secret")


def test_two_writers_never_mix(root: Path) -> None:
    """Of two that expect the same content one is refused, and the file holds what the other wrote."""
    files = Folder(root)
    files.write("count", b"0")
    done: list[int] = []

    def add() -> None:
        for _ in range(50):
            while True:
                held = files.read("count")
                try:
                    files.write("count", str(int(held) + 1).encode(), expected=held)
                except FolderError:
                    continue
                done.append(1)
                break

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert files.read("count") == b"200"
    assert len(done) == 200
