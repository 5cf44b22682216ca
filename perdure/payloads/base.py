"""What every payload store can do: carry payloads for Temporal's SDK, and keep blobs by name for perdure itself."""

from __future__ import annotations

import re
from abc import abstractmethod

from temporalio.converter import StorageDriver

from perdure.contracts import cut
from perdure.errors import PayloadStoreError

NAME = re.compile(r"[a-z]+(/[0-9a-f]{2,64})+")
"""Names of blobs: a kind and digests. Nothing that somebody wrote is part of one."""


class PayloadStore(StorageDriver):
    """A driver of the SDK that also keeps blobs. Everything raises `PayloadStoreError`."""

    @abstractmethod
    async def put(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`. Once it returns the blob is there for everyone, whole."""

    @abstractmethod
    async def find(self, name: str) -> bytes | None:
        """The blob of that name; `None` where there is none."""


def checked(name: str) -> str:
    """`name`, where it is one of a blob: no path leads out of the store."""
    if not NAME.fullmatch(name):
        raise PayloadStoreError(f"{cut(ascii(name), 200)} names nothing in a payload store")
    return name
