"""Rows of JSON that are only ever appended, kept small: old ones compressed, in blocks that never change.

A block that never changes is the same payload each time a run continues as new, so that a payload store, which goes by
content, keeps it once.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Json

BLOCK = 1_500_000
"""Bytes of rows in a block."""
PAYLOAD = 400_000
"""Bytes of the blocks that make one payload: more than the least that a payload store takes."""


@dataclass(frozen=True)
class Block:
    """Rows that are compressed."""

    rows: int
    packed: bytes


class Log:
    """Append-only rows. `base` counts rows before the first one that have been dropped."""

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self.length = base
        """Rows, with those that were dropped."""
        self.size = 0
        """Bytes of the rows that are kept."""
        self._blocks: list[Block] = []
        self._open: list[bytes] = []
        self._open_size = 0

    def append(self, row: Json) -> bytes:
        """Add a row; returns it as it is written: with its keys in their order, which a model may read."""
        text = json.dumps(row, separators=(",", ":"), ensure_ascii=False)
        written = text.encode("utf-8", "surrogatepass")
        self._add(written)
        return written

    def _add(self, written: bytes) -> None:
        self._open.append(written)
        self._open_size += len(written)
        self.size += len(written)
        self.length += 1
        if self._open_size >= BLOCK:
            self._blocks.append(Block(len(self._open), zlib.compress(b"\n".join(self._open))))
            self._open, self._open_size = [], 0

    def _take(self, packed: bytes, rows: list[bytes]) -> None:
        """Add a stream of `pack`: a block that is full stays as it is."""
        size = sum(map(len, rows))
        if size < BLOCK:
            for written in rows:
                self._add(written)
            return
        self._blocks.append(Block(len(rows), packed))
        self.size += size
        self.length += len(rows)

    def rows(self, start: int) -> Iterator[bytes]:
        """Rows from `start` on, as they are written; from the first one that is kept."""
        at = self.base
        for block in self._blocks:
            if start < at + block.rows:
                yield from zlib.decompress(block.packed).split(b"\n")[max(0, start - at) :]
            at += block.rows
        yield from self._open[max(0, start - at) :]

    def page(self, start: int, max_bytes: int) -> list[Json]:
        """Rows from `start` on, up to `max_bytes`, at least one where there is one."""
        page: list[Json] = []
        used = 0
        for written in self.rows(start):
            used += len(written)
            if page and used > max_bytes:
                break
            page.append(read(written))
        return page

    def drop(self, upto: int) -> None:
        """Forget the rows before `upto`."""
        kept = Log(upto)
        for written in self.rows(upto):
            kept._add(written)
        self.__dict__.update(kept.__dict__)

    def pack(self) -> list[bytes]:
        """The rows as few payloads: zlib streams after one another."""
        streams = [block.packed for block in self._blocks]
        payloads: list[bytes] = []
        for stream in [*streams, *([zlib.compress(b"\n".join(self._open))] if self._open else [])]:
            if payloads and len(payloads[-1]) < PAYLOAD:
                payloads[-1] += stream
            else:
                payloads.append(stream)
        return payloads


def unpacked(payloads: Sequence[Any], base: int) -> Log:
    """The log that was packed. Raises `zlib.error` or `TypeError` for what wasn't."""
    log = Log(base)
    for payload in payloads:
        rest = bytes(payload)
        while rest:
            stream = zlib.decompressobj()
            rows = stream.decompress(rest)
            packed, rest = rest[: len(rest) - len(stream.unused_data)], stream.unused_data
            log._take(packed, rows.split(b"\n"))  # pyright: ignore[reportPrivateUsage]
    return log


def read(written: bytes) -> Json:
    """A row from its JSON."""
    return json.loads(written.decode("utf-8", "surrogatepass"))
