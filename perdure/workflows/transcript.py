"""The conversation of a run as the workflow keeps it: entries of opaque JSON, only ever appended.

An entry is `{"kind": "start" | "user" | "response" | "outcomes" | "note", …}`. What is inside a message is the
business of `activities/transcript.py`; here entries are counted, digested and cut into pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Json, Mark, Packed, Seen, TranscriptPage, chain_digest
    from perdure.workflows.log import Log, read, unpacked

MAX_TAIL = 512 * 1024
"""Bytes of entries that are sent along with an activity; more is left out and asked for by query."""


class Transcript:
    """Append-only entries with their chained digest."""

    def __init__(self) -> None:
        self._log = Log()
        self._base = Mark()
        self._digest = ""
        self._sent = Mark()
        self._tail: list[Json] = []
        """The entries since `_sent`."""
        self._tail_size = 0

    @classmethod
    def restored(cls, packed: Packed, told: Mark, payloads: Sequence[Any]) -> Transcript:
        """The transcript that another run of the chain has packed."""
        transcript = cls()
        transcript._log = unpacked(payloads, packed.base.length)
        transcript._base, transcript._digest, transcript._sent = packed.base, packed.digest, told
        since = list(transcript._log.rows(told.length))
        transcript._tail = [read(written) for written in since]
        transcript._tail_size = sum(map(len, since))
        return transcript

    def packed(self) -> tuple[Packed, list[bytes]]:
        """What another run needs to have this transcript."""
        payloads = self._log.pack()
        where = Packed(base=self._base, length=self._log.length, digest=self._digest, payloads=len(payloads))
        return where, payloads

    def append(self, entry: Json) -> None:
        """Add one entry. Its JSON is never changed afterwards."""
        self._digest = chain_digest(self._digest, entry)
        self._tail_size += len(self._log.append(entry))
        self._tail.append(entry)

    @property
    def mark(self) -> Mark:
        """The place after the last entry."""
        return Mark(length=self._log.length, digest=self._digest)

    @property
    def sent(self) -> Mark:
        """The place that a worker was last told of."""
        return self._sent

    def seen(self) -> Seen:
        """What an activity needs to have all entries: the place a worker was last told of, and what came since."""
        return Seen(base=self._sent, tail=list(self._tail) if self._tail_size <= MAX_TAIL else None, until=self.mark)

    def told(self) -> None:
        """A worker has been told all entries: the next `seen` starts here."""
        self._sent, self._tail, self._tail_size = self.mark, [], 0

    def drop(self, upto: int) -> None:
        """Forget the entries before `upto`: a note stands for them."""
        digest = self._base.digest
        for written in self._log.rows(self._base.length):
            if self._base.length == upto:
                break
            digest = chain_digest(digest, read(written))
            self._base = Mark(length=self._base.length + 1, digest=digest)
        self._log.drop(upto)
        if self._sent.length < upto:
            self._sent = self._base

    def page(self, start: int, max_bytes: int) -> TranscriptPage:
        """Entries from `start` on, up to `max_bytes`, at least one where there is one."""
        start = max(start, self._base.length)
        entries = self._log.page(start, max_bytes)
        return TranscriptPage(
            start=start, entries=entries, total=self._log.length, digest=self._digest, base=self._base
        )
