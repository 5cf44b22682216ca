"""What a run takes along when it continues as new, at its limit: 1.5 MB in all, compressed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client
from temporalio.service import RPCError

from perdure import App, DurableAgent
from perdure.activities.cache import digest_after
from perdure.contracts import Mark, Packed, TranscriptQuery, canonical
from perdure.workflows.log import BLOCK, Log, unpacked
from perdure.workflows.transcript import Transcript
from tests.deciding import pending, update
from tests.harness import LONG, Handle, chain, failure_of, with_store, working
from tests.noise import noise
from tests.scripts import Script, answer
from tests.sessions import SESSION, closed, turn


def reader(sizes: list[int], ran: list[int], *, at_once: bool = False, gated: bool = False) -> App:
    """An agent that reads something of each size, in as many steps or in one, and is done."""
    tools = FunctionToolset[None](id="tools")

    @tools.tool_plain
    def read(n: int) -> str:
        ran.append(n)
        return noise(sizes[n], n)

    @tools.tool_plain(requires_approval=True)
    def ask() -> str:
        return "asked"

    calls: list[Any] = [ToolCallPart("read", {"n": n}) for n in range(len(sizes))]
    last: list[Any] = [[ToolCallPart("ask", {})]] if gated else []
    script = Script(*([calls] if at_once else [[call] for call in calls]), *last, "done", "more")

    async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        """As many steps are behind it as the summary says, and as are still there."""
        text = str(messages[0])
        done = int(text.partition("steps so far: ")[2].partition(".")[0] or 0) if "steps so far" in text else 0
        done += sum(isinstance(message, ModelResponse) for message in messages)
        return answer(script.turns[done], messages, info, done)

    async def summary(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart(f"steps so far: {len(ran) - 1}.")])

    models = {"short": FunctionModel(summary)}
    reads = DurableAgent(
        Agent(FunctionModel(model), name="reader", toolsets=[tools]), models=models, compact_with="short"
    )
    return App(agents=[reads])


async def carried(handle: Handle) -> list[int]:
    """Bytes of the arguments with which each run of a chain but the first began."""
    sizes: list[int] = []
    for history in reversed(await chain(handle)):
        started = history.events[0].workflow_execution_started_event_attributes
        if started.continued_execution_run_id:
            sizes.append(sum(payload.ByteSize() for payload in started.input.payloads))
    return sizes


async def test_just_under_the_limit_it_continues(rolling_client: Client, cache: int) -> None:
    ran: list[int] = []
    async with working(rolling_client, reader([600_000, 600_000, 600_000], ran), cache=cache) as runs:
        handle = await runs.start("reader", "go", timeout=LONG, **SESSION)
        assert (await turn(handle, turn=1))["output"]["value"] == "done"
        assert (await closed(handle))["steps"] == 4
        assert ran == [0, 1, 2]
        assert 1_300_000 < max(await carried(handle)) < 1_500_000


async def test_just_over_the_limit_older_steps_give_way_to_a_summary(rolling_client: Client, cache: int) -> None:
    ran: list[int] = []
    async with working(rolling_client, reader([700_000] * 5, ran), cache=cache) as runs:
        handle = await runs.start("reader", "go", timeout=LONG, **SESSION)
        assert (await turn(handle, turn=1))["output"]["value"] == "done"
        assert ran == [0, 1, 2, 3, 4]
        page = await handle.query("transcript", {})
        assert page["start"] == page["base"]["length"] > 0
        assert "note" in [entry["kind"] for entry in page["entries"]]
        assert (await closed(handle))["steps"] == 6
        assert max(await carried(handle)) < 1_500_000


async def test_just_over_the_limit_while_a_call_waits(rolling_client: Client, cache: int) -> None:
    ran: list[int] = []
    async with working(rolling_client, reader([540_000] * 4, ran, gated=True), cache=cache) as runs:
        handle = await runs.start("reader", "go", timeout=LONG, **SESSION)
        (row,) = await pending(handle, 1)
        before = (await handle.describe()).run_id
        for _ in range(20):
            if (await handle.describe()).run_id != before:
                break
            await handle.signal("nothing", {})
        (again,) = await pending(handle, 1)
        assert again["call"] == row["call"]  # a workflow task that the server gave up has another time the next time
        await update(handle, "approve", {"call": row["call"], "by": "ann"})
        assert (await turn(handle, turn=1))["output"]["value"] == "done"
        assert (await closed(handle))["steps"] == 6
        assert (await handle.query("transcript", {}))["base"]["length"] > 0


async def test_with_a_payload_store_there_is_no_such_limit(rolling_client: Client, folder: Path, cache: int) -> None:
    ran: list[int] = []
    async with working(with_store(rolling_client), reader([900_000] * 6, ran), cache=cache) as runs:
        handle = await runs.start("reader", "go", timeout=LONG, **SESSION)
        assert (await turn(handle, turn=1))["output"]["value"] == "done"
        assert (await closed(handle))["steps"] == 7
        assert ran == [0, 1, 2, 3, 4, 5]
        page = await handle.query("transcript", {})
        assert (page["base"], "note" in [entry["kind"] for entry in page["entries"]]) == ({"length": 0}, False)
        assert max(await carried(handle)) < 50_000
        assert len(await asyncio.to_thread(lambda: list(folder.rglob("*")))) > 1


@pytest.mark.parametrize("gated", [False, True])
async def test_with_nothing_to_summarise_it_ends_typed_before_the_command_is_issued(
    rolling_client: Client, cache: int, gated: bool
) -> None:
    ran: list[int] = []
    app = reader([700_000] * 3, ran, at_once=True, gated=gated)
    async with working(rolling_client, app, cache=cache) as runs:
        handle = await runs.start("reader", "go", timeout=LONG, **SESSION)
        if not gated:
            await turn(handle, turn=1)
        for _ in range(10):
            await send_until_ended(handle)
        failure = await failure_of(handle)
        assert failure.type == "TranscriptTooLarge"
        assert "1500000 are possible" in failure.message
        assert "PERDURE_PAYLOADS" in failure.message
        assert sorted(ran) == [0, 1, 2]


async def send_until_ended(handle: Handle) -> None:
    """One more event, unless the run has ended."""
    with contextlib.suppress(RPCError):
        await handle.signal("nothing", {})


@pytest.mark.parametrize("rows", [0, 1, 5, 4000])
def test_a_log_comes_back_as_it_was(rows: int) -> None:
    written: list[dict[str, Any]] = [{"z": n, "text": noise(900, n), "odd": "\ud800 é"} for n in range(rows)]
    log = Log()
    for row in written:
        log.append(row)
    again = unpacked(log.pack(), 0)
    assert (again.length, again.size) == (log.length, log.size)
    assert json.dumps(again.page(0, 10_000_000)) == json.dumps(written)  # also the order of the keys
    assert again.page(rows - 1, 1) == written[-1:]
    assert again.pack() == log.pack()
    again.drop(rows // 2)
    assert (again.base, again.page(0, 10_000_000)) == (rows // 2, written[rows // 2 :])
    assert unpacked(again.pack(), again.base).page(0, 10_000_000) == written[rows // 2 :]


def test_what_is_full_is_the_same_payload_for_ever() -> None:
    log = Log()
    packs: list[list[bytes]] = []
    for n in range(3 * BLOCK // 900):
        log.append({"text": noise(900, n)})
        if n % 500 == 0:
            packs.append(log.pack())
    for earlier, later in itertools.pairwise(packs):
        assert earlier[:-1] == later[: len(earlier) - 1]


def test_a_transcript_comes_back_with_its_marks() -> None:
    transcript = Transcript()
    for n in range(10):
        transcript.append({"kind": "user", "n": n})
        if n == 6:
            transcript.told()
    packed, payloads = transcript.packed()
    again = Transcript.restored(Packed.model_validate_json(packed.model_dump_json()), transcript.sent, payloads)
    assert (again.mark, again.seen()) == (transcript.mark, transcript.seen())
    every = TranscriptQuery()
    assert canonical(again.page(every).model_dump()) == canonical(transcript.page(every).model_dump())


def test_who_needs_the_conversation_is_given_it_from_the_note_on() -> None:
    transcript = Transcript()
    for n in range(6):
        transcript.append({"kind": "user", "n": n})
    place = digest_after(Mark(), [{"kind": "user", "n": n} for n in range(4)])
    transcript.append({"kind": "note", "upto": 4})
    transcript.append({"kind": "user", "n": 7})
    for kept in (transcript, Transcript.restored(transcript.packed()[0], transcript.sent, transcript.packed()[1])):
        whole, needed = kept.page(TranscriptQuery()), kept.page(TranscriptQuery(until=8))
        assert (whole.start, len(whole.entries), whole.base) == (0, 8, Mark())
        assert (needed.start, needed.entries[0]["n"], needed.base) == (4, 4, Mark(length=4, digest=place))
        assert digest_after(needed.base, needed.entries) == kept.mark.digest
        assert kept.page(TranscriptQuery(until=6)).start == 0, "that was before the note"
        later = kept.page(TranscriptQuery(start=6, until=8))
        assert (later.start, len(later.entries)) == (6, 2)
        kept.append({"kind": "note", "upto": 6})
        assert kept.page(TranscriptQuery(until=9)).base.length == 6
        kept.drop(6)
        assert kept.page(TranscriptQuery()).base == kept.page(TranscriptQuery(until=9)).base
