"""The transcripts a worker holds, and how it asks a workflow for one that it doesn't.

An activity is told the digest of what it needs and the entries since the last request. Where the worker holds the rest,
nothing is transferred; where it doesn't, the workflow is asked by query, which writes nothing to history.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client, RPCTimeoutOrCancelledError, WorkflowQueryFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from perdure.activities.transcript import Conversation
from perdure.contracts import Json, Mark, Seen, TranscriptPage, chain_digest
from perdure.errors import TranscriptMismatch

Key = tuple[str, str, str]

QUERY_TIMEOUT = timedelta(seconds=2)
QUERY_TRIES = 5
PAGE_BYTES = 1_500_000
KEPT_PER_RUN = 2
"""Before and after the last response: a repeated request starts from the one, its calls from the other."""


class Transcripts:
    """An LRU cache of conversations for one worker, bounded in bytes of JSON; as Python objects they take about five
    times as much."""

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[Key, Conversation] = OrderedDict()
        self._runs: dict[tuple[str, str], list[Key]] = {}
        self._bytes = 0
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}
        self.misses = 0
        """How often a workflow had to be asked."""

    async def load(self, seen: Seen) -> Conversation:
        """The conversation up to `seen.until`. Raises a retryable `TranscriptMismatch` where nobody has it."""
        if (known := self._from_held(seen)) is not None:
            return known
        async with self._one_at_a_time(activity.info().workflow_id or ""):
            if (known := self._from_held(seen)) is not None:
                return known
            return await self._ask(seen)

    def hold(self, conversation: Conversation) -> None:
        """Keep a conversation, and of the same run only the latest few."""
        key = self._key(conversation.mark.digest)
        self._drop(key)
        self._held[key] = conversation
        self._bytes += conversation.size
        of_run = self._runs.setdefault(key[:2], [])
        of_run.append(key)
        for old in of_run[:-KEPT_PER_RUN]:
            self._drop(old)
        while self._bytes > self._max_bytes and len(self._held) > 1:
            self._drop(next(iter(self._held)))

    def _from_held(self, seen: Seen) -> Conversation | None:
        if (exact := self._get(seen.until.digest)) is not None:
            return exact
        base = Conversation() if seen.base.length == 0 else self._get(seen.base.digest)
        if base is None or seen.tail is None or digest_after(seen.base, seen.tail) != seen.until.digest:
            return None
        conversation = base.extended(seen.tail)
        self.hold(conversation)
        return conversation

    async def _ask(self, seen: Seen) -> Conversation:
        self.misses += 1
        for _ in range(2):
            base, entries = await _query_entries(activity.client(), seen.until.length)
            if digest_after(base, entries) == seen.until.digest:
                conversation = Conversation(mark=base).extended(entries)
                self.hold(conversation)
                return conversation
        error = TranscriptMismatch(
            f"the workflow's transcript at {seen.until.length} entries is not the one that was asked for"
        )
        raise ApplicationError(str(error), type=error.type, non_retryable=activity.info().attempt >= 3)

    def _key(self, digest: str) -> Key:
        info = activity.info()
        return info.namespace, info.workflow_id or "", digest

    def _get(self, digest: str) -> Conversation | None:
        key = self._key(digest)
        if key not in self._held:
            return None
        self._held.move_to_end(key)
        return self._held[key]

    def _drop(self, key: Key) -> None:
        conversation = self._held.pop(key, None)
        if conversation is None:
            return
        self._bytes -= conversation.size
        self._runs[key[:2]].remove(key)
        if not self._runs[key[:2]]:
            del self._runs[key[:2]]

    @asynccontextmanager
    async def _one_at_a_time(self, workflow_id: str) -> AsyncGenerator[None]:
        lock, users = self._locks.get(workflow_id, (asyncio.Lock(), 0))
        self._locks[workflow_id] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks[workflow_id]
            self._locks[workflow_id] = lock, users - 1
            if users == 1:
                del self._locks[workflow_id]


def digest_after(mark: Mark, entries: list[Json]) -> str:
    """The digest of a transcript at `mark` with `entries` after it."""
    digest = mark.digest
    for entry in entries:
        digest = chain_digest(digest, entry)
    return digest


async def _query_entries(client: Client, length: int) -> tuple[Mark, list[Json]]:
    """The first `length` entries of the workflow this activity belongs to, page by page, but for those that a note
    stands for, and the place before the first of them."""
    page = await _query_page(client, 0, length)
    base, entries = page.base, page.entries
    while page.entries and base.length + len(entries) < length:
        page = await _query_page(client, base.length + len(entries), length)
        entries = [*entries, *page.entries]
    return base, entries[: max(0, length - base.length)]


async def _query_page(client: Client, start: int, until: int) -> TranscriptPage:
    info = activity.info()
    handle = client.get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id)
    argument = {"start": start, "max_bytes": PAGE_BYTES, "until": until}
    for attempt in range(1, QUERY_TRIES + 1):
        try:
            return await handle.query(
                "transcript", argument, result_type=TranscriptPage, rpc_timeout=QUERY_TIMEOUT * attempt
            )
        except (RPCError, RPCTimeoutOrCancelledError, WorkflowQueryFailedError) as error:
            if attempt == QUERY_TRIES or (isinstance(error, RPCError) and error.status == RPCStatusCode.NOT_FOUND):
                raise
            await asyncio.sleep(0.1 * attempt)
    raise AssertionError("unreachable")
