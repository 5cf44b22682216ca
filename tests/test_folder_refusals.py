"""Writes under a root folder that the system, another writer or the root itself stands against."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perdure.toolsets.folder import Folder
from perdure.toolsets.paths import MAX_PARTS, MAX_PATH, FolderError
from tests.test_folder import WAYS

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


@pytest.mark.parametrize("way", [*WAYS, Folder.names])
def test_a_path_has_an_end(tmp_path: Path, way: Callable[[Folder, str], object]) -> None:
    for path in ("a/" * MAX_PARTS + "f", "é" * (MAX_PATH // 2) + "f", "./" * MAX_PATH + "f", "a/" * 20_000 + "f"):
        with pytest.raises(FolderError, match=r"too long|too deep") as refused:
            way(Folder(tmp_path), path)
        assert len(str(refused.value)) < 300
    assert os.listdir(tmp_path) == []
    files = Folder(tmp_path)
    assert files.write("a/" * (MAX_PARTS - 1) + "f", b"deep") == "created"
