"""The conversation of a run as the workflow keeps it: entries of opaque JSON, only ever appended.

An entry is `{"kind": "start" | "user" | "response" | "outcomes" | "note", …}`. What is inside a message is the
business of `activities/transcript.py`; here entries are counted, digested and cut into pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Json, Mark, Packed, Seen, TranscriptPage, TranscriptQuery, chain_digest
    from perdure.workflows.log import Log, read, unpacked

MAX_TAIL = 512 * 1024
"""Bytes of entries that are sent along with an activity; more is left out and asked for by query."""


class Transcript:
    """Append-only entries with their chained digest."""

    def __init__(self) -> None:
        self._log = Log()
        self._base = Mark()
        self._covered = Mark()
        self._note = 0
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
        transcript._covered, transcript._note = packed.covered, packed.note
        since = list(transcript._log.rows(told.length))
        transcript._tail = [read(written) for written in since]
        transcript._tail_size = sum(map(len, since))
        return transcript

    def packed(self) -> tuple[Packed, list[bytes]]:
        """What another run needs to have this transcript."""
        payloads = self._log.pack()
        where = Packed(
            base=self._base,
            length=self._log.length,
            digest=self._digest,
            covered=self._covered,
            note=self._note,
            payloads=len(payloads),
        )
        return where, payloads

    def append(self, entry: Json) -> None:
        """Add one entry. Its JSON is never changed afterwards."""
        self._digest = chain_digest(self._digest, entry)
        self._tail_size += len(self._log.append(entry))
        self._tail.append(entry)
        if entry.get("kind") == "note":
            self._covered, self._note = self._place(entry["upto"]), self._log.length - 1

    def _place(self, length: int) -> Mark:
        """The place after so many entries, counted from where the note before leads: only later ones are looked at."""
        place = self._covered if self._base.length < self._covered.length <= length else self._base
        for written in self._log.rows(place.length):
            if place.length >= length:
                break
            place = Mark(length=place.length + 1, digest=chain_digest(place.digest, read(written)))
        return place

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
        self._base = self._place(upto)
        self._log.drop(upto)
        if self._sent.length < upto:
            self._sent = self._base

    def page(self, query: TranscriptQuery) -> TranscriptPage:
        """Entries as they are asked for, at least one where there is one."""
        base = self._covered if 0 < self._note < query.until else self._base
        start = max(query.start, base.length)
        entries = self._log.page(start, query.max_bytes)
        return TranscriptPage(start=start, entries=entries, total=self._log.length, digest=self._digest, base=base)
