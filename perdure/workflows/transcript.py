"""The conversation of a run as the workflow keeps it: entries of opaque JSON, only ever appended.

An entry is `{"kind": "start" | "user" | "response" | "outcomes" | "note", …}`. What is inside a message is the
business of `activities/transcript.py`; here entries are counted, digested and cut into pages.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Json, Mark, Seen, TranscriptPage, canonical, chain_digest

MAX_TAIL = 512 * 1024
"""Bytes of entries that are sent along with an activity; more is left out and asked for by query."""


class Transcript:
    """Append-only entries with their chained digest."""

    def __init__(self) -> None:
        self._entries: list[Json] = []
        self._sizes: list[int] = []
        self._digest = ""
        self._sent = Mark()

    def append(self, entry: Json) -> None:
        """Add one entry. Its JSON is never changed afterwards."""
        self._entries.append(entry)
        self._sizes.append(len(canonical(entry)))
        self._digest = chain_digest(self._digest, entry)

    @property
    def mark(self) -> Mark:
        """The place after the last entry."""
        return Mark(length=len(self._entries), digest=self._digest)

    def seen(self) -> Seen:
        """What an activity needs to have all entries: the place a worker was last told of, and what came since."""
        since = self._sent.length
        tail = self._entries[since:] if sum(self._sizes[since:]) <= MAX_TAIL else None
        return Seen(base=self._sent, tail=tail, until=self.mark)

    def told(self) -> None:
        """A worker has been told all entries: the next `seen` starts here."""
        self._sent = self.mark

    def page(self, start: int, max_bytes: int) -> TranscriptPage:
        """Entries from `start` on, up to `max_bytes`, at least one where there is one."""
        end, used = start, 0
        while end < len(self._entries) and (end == start or used + self._sizes[end] <= max_bytes):
            used += self._sizes[end]
            end += 1
        entries = self._entries[start:end]
        return TranscriptPage(start=start, entries=entries, total=len(self._entries), digest=self._digest)
