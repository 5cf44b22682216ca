"""A worker that lost its cache goes on from a workflow that no longer has its first entries."""

from __future__ import annotations

import uuid
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from perdure.activities.cache import Transcripts, digest_after
from perdure.contracts import Mark, Seen, TranscriptPage
from tests.transcripts import RUN, answered, built, called, compacted

ENTRIES = [*compacted(RUN), called("d"), answered("d")]
UPTO = ENTRIES[len(RUN)]["upto"]


def mark(length: int) -> Mark:
    return Mark(length=length, digest=digest_after(Mark(), ENTRIES[:length]))


@workflow.defn(name="Dropped", sandboxed=False)
class Dropped:
    """Has the entries from `UPTO` on, and gives one at a time."""

    @workflow.query
    def transcript(self, query: dict[str, Any]) -> TranscriptPage:
        start = max(query["start"], UPTO)
        return TranscriptPage(start=start, base=mark(UPTO), entries=ENTRIES[start : start + 1], total=len(ENTRIES))

    @workflow.run
    async def run(self, length: int) -> str:
        from datetime import timedelta

        from temporalio.common import RetryPolicy

        return await workflow.execute_activity(
            "load", length, start_to_close_timeout=timedelta(seconds=20), retry_policy=RetryPolicy(maximum_attempts=1)
        )


@activity.defn(name="load")
async def load(length: int) -> str:
    """The conversation at a place, with an empty cache."""
    transcripts = Transcripts()
    loaded = await transcripts.load(Seen(base=mark(length - 1), tail=ENTRIES[length - 1 : length], until=mark(length)))
    assert transcripts.misses == 1
    return "the same" if loaded == built(ENTRIES[:length]) else repr(loaded)


async def test_the_conversation_is_built_from_what_is_left(client: Client) -> None:
    queue = f"q-{uuid.uuid4().hex[:12]}"
    runner = UnsandboxedWorkflowRunner()
    async with Worker(client, task_queue=queue, workflows=[Dropped], activities=[load], workflow_runner=runner):
        for length in range(len(RUN) + 1, len(ENTRIES) + 1):
            run = client.execute_workflow("Dropped", length, id=f"run-{uuid.uuid4().hex[:12]}", task_queue=queue)
            assert await run == "the same"
