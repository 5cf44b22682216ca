"""Ways to reach a file of a folder."""

from __future__ import annotations

from collections.abc import Callable

from perdure.toolsets.folder import Folder

OUTSIDE = b"outside"
WAYS: list[Callable[[Folder, str], object]] = [
    lambda files, path: files.read(path),
    lambda files, path: files.write(path, b"mine"),
    lambda files, path: files.delete(path),
]
