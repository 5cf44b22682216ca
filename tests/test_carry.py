"""What a run takes along when it continues as new, at its limit: 1.5 MB in all, compressed."""

from __future__ import annotations

import base64
import itertools
import random
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from temporalio.client import Client

from perdure import App, DurableAgent
from perdure.contracts import Packed, canonical
from perdure.workflows.log import BLOCK, Log, unpacked
from perdure.workflows.transcript import Transcript
from tests.harness import Handle, chain, failure_of, working
from tests.scripts import Script
from tests.sessions import SESSION, closed, turn


def noise(size: int, seed: int = 0) -> str:
    """Text of so many bytes that hardly gets smaller: zlib makes three quarters of it."""
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()[:size]


def reader(sizes: list[int], ran: list[int]) -> App:
    """An agent that reads something of each size, and is done."""
    tools = FunctionToolset[None](id="tools")

    @tools.tool_plain
    def read(n: int) -> str:
        ran.append(n)
        return noise(sizes[n], n)

    script = Script(*({"read": {"n": n}} for n in range(len(sizes))), "done", "more")
    return App(agents=[DurableAgent(Agent(script.model, name="reader", toolsets=[tools]))])


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
        handle = await runs.start("reader", "go", **SESSION)
        assert (await turn(handle, turn=1))["output"]["value"] == "done"
        assert (await closed(handle))["steps"] == 4
        assert ran == [0, 1, 2]
        assert 1_300_000 < max(await carried(handle)) < 1_500_000


async def test_just_over_the_limit_it_ends_typed_before_the_command_is_issued(
    rolling_client: Client, cache: int
) -> None:
    ran: list[int] = []
    async with working(rolling_client, reader([700_000, 700_000, 700_000, 1, 1], ran), cache=cache) as runs:
        handle = await runs.start("reader", "go", **SESSION)
        failure = await failure_of(handle)
        assert failure.type == "TranscriptTooLarge"
        assert "1500000 are possible" in failure.message
        assert "PERDURE_PAYLOADS" in failure.message
        assert ran == [0, 1, 2]
        assert (await handle.query("status"))["step"] == 3


@pytest.mark.parametrize("rows", [0, 1, 5, 4000])
def test_a_log_comes_back_as_it_was(rows: int) -> None:
    written: list[dict[str, Any]] = [{"n": n, "text": noise(900, n), "odd": "\ud800 é"} for n in range(rows)]
    log = Log()
    for row in written:
        log.append(row)
    again = unpacked(log.pack(), 0)
    assert (again.length, again.size) == (log.length, log.size)
    assert again.page(0, 10_000_000) == written
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
    assert canonical(again.page(0, 10_000).model_dump()) == canonical(transcript.page(0, 10_000).model_dump())
