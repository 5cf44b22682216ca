"""A payload store in a folder: for one machine, or one that is shared by all workers and clients.

A payload is a file named after the SHA-256 of its bytes. It is written beside its place, flushed to the disk and then
moved there, so that any number of processes may write the same payload at once and nobody ever reads half of one.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from temporalio.api.common.v1 import Payload
from temporalio.converter import StorageDriverClaim, StorageDriverRetrieveContext, StorageDriverStoreContext

from perdure.errors import PayloadStoreError
from perdure.payloads.base import PayloadStore, checked

NAME = "perdure.files"
"""In every reference in history: never changes."""
THREADS = ThreadPoolExecutor(8, thread_name_prefix="perdure-files")
"""Of the store's own: those of the loop may all be with tools that hang."""
T = TypeVar("T")


class FileStore(PayloadStore):
    """Payloads in files under `folder`, which is made when something is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def name(self) -> str:
        return NAME

    def type(self) -> str:
        return NAME

    async def store(
        self,
        context: StorageDriverStoreContext,  # noqa: ARG002
        payloads: Sequence[Payload],
    ) -> list[StorageDriverClaim]:
        """Keep payloads. Of equal ones only one copy is kept."""
        return [StorageDriverClaim({"sha256": await self._store(one.SerializeToString())}) for one in payloads]

    async def retrieve(
        self,
        context: StorageDriverRetrieveContext,  # noqa: ARG002
        claims: Sequence[StorageDriverClaim],
    ) -> list[Payload]:
        """The payloads of these claims, each compared with its digest."""
        return [await self._retrieve(claim.claim_data.get("sha256", "")) for claim in claims]

    async def put(self, name: str, data: bytes) -> None:
        await _in_thread(self._write, checked(name), data)

    async def find(self, name: str) -> bytes | None:
        return await _in_thread(self._read, checked(name))

    async def _store(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        await self.put(_place(digest), data)
        return digest

    async def _retrieve(self, digest: str) -> Payload:
        name = _place(digest)
        data = await self.find(name)
        if data is None:
            raise PayloadStoreError(
                f"{name!r} isn't in {str(self.folder)!r}: it was removed, or PERDURE_PAYLOADS names another folder "
                "here than where it was written"
            )
        if hashlib.sha256(data).hexdigest() != digest:
            raise PayloadStoreError(
                f"the payload {digest} in {str(self.folder)!r} is damaged: it has {len(data)} bytes, and their digest "
                "is another. Restore the file from a backup; a run that needs it goes on then"
            )
        return Payload.FromString(data)

    def _write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        try:
            if _is_there(path, len(data)):
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_whole(path, data)
        except OSError as error:
            raise PayloadStoreError(
                f"{len(data)} bytes can't be kept in {str(self.folder)!r} ({error}): make the folder of "
                "PERDURE_PAYLOADS writable"
            ) from error

    def _read(self, name: str) -> bytes | None:
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PayloadStoreError(f"{name!r} in {str(self.folder)!r} can't be read: {error}") from error


async def _in_thread(function: Callable[..., T], *args: object) -> T:
    return await asyncio.get_running_loop().run_in_executor(THREADS, function, *args)


def _place(digest: str) -> str:
    return f"payloads/{digest[:2]}/{digest}"


def _is_there(path: Path, size: int) -> bool:
    """Whether the file is there, whole. It then gets a new time, so that it may be removed by age."""
    try:
        if path.stat().st_size != size:
            return False
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def _write_whole(path: Path, data: bytes) -> None:
    """The file is there whole or not at all, also after a power cut."""
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
