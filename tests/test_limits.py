"""Each limit of docs/limits.md, just under and just over: what is over ends typed or in words, and nothing runs twice.

Limits of a step are in test_limits_steps.py, of tool results in test_large_results.py, of decisions in
test_approval_sizes.py. Here are those of requests, and that the documentation has the numbers.
"""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.service import RPCError

from perdure import App, DurableAgent
from perdure.activities.large_result import head_and_tail
from perdure.client import PerdureClient
from perdure.context import MAX_LIVE
from perdure.contracts import (
    MAX_ANSWERS,
    MAX_DEPTH,
    MAX_DETAILS,
    MAX_KEPT,
    MAX_NAME,
    MAX_PAYLOAD,
    MAX_REASON,
    MAX_STORED,
    MAX_TEXT,
    MAX_TOKEN,
    MAX_TOLD,
    MIN_RESULT,
    OFFLOADED,
    payload_size,
)
from perdure.errors import InvalidRequest
from perdure.toolsets.read_result import MOST
from perdure.workflows.details import MAX_AWAITED, MAX_CALLS, MAX_SHOWN
from perdure.workflows.state import MAX_REJECTED, MAX_REJECTED_TEXT
from perdure.workflows.transcript import MAX_TAIL
from perdure.workflows.turn import MAX_HISTORY, MAX_HISTORY_BYTES
from perdure.workflows.verbs import MAX_REFUSED
from tests.command import ROOT
from tests.harness import Handle, activities, failure_of, working
from tests.payloads import MB
from tests.scripts import Script

PAGE = ROOT / "docs" / "limits.md"
REFUSED = r"the request has {} bytes; it may have {}. Put large inputs where a tool can read them."


class Params(BaseModel):
    text: str


def reader(*turns: Any) -> tuple[Script, App]:
    """An agent that takes anything and answers."""
    script = Script(*(turns or ("done",)))
    agent = Agent(script.model, name="reads", deps_type=Params)
    return script, App(agents=[DurableAgent(agent, params_type=Params, model_attempts=1)])


def request(field: str, size: int) -> dict[str, Any]:
    """A request of so many bytes as JSON, with its bulk in one field."""

    def make(text: str) -> dict[str, Any]:
        bulk: dict[str, Any] = {"prompt": text, "params": {"text": text}, "metadata": {"x": text}}
        return {"prompt": "", "params": {"text": ""}, "metadata": {}, field: bulk[field]}

    empty = payload_size({"agent": "reads", **make("")})
    return make("x" * (size - empty))


@pytest.mark.parametrize("field", ["prompt", "params", "metadata"])
@pytest.mark.parametrize("over", [False, True], ids=["just under", "just over"])
async def test_a_request(client: Client, cache: int, field: str, over: bool) -> None:
    script, app = reader()
    async with working(client, app, cache=cache) as runs:
        sent = request(field, MAX_PAYLOAD + over)
        handle = await runs.start("reads", sent.pop("prompt"), **sent)
        if not over:
            assert (await handle.result())["output"] == "done"
            return
        failure = await failure_of(handle)
        assert (failure.type, failure.message) == (
            "InvalidRequest",
            REFUSED.format(MAX_PAYLOAD + 1, MAX_PAYLOAD),
        )
        assert await activities(handle) == []
    assert script.requests == []


@pytest.mark.parametrize("field", ["prompt", "params", "metadata"])
@pytest.mark.parametrize("over", [False, True], ids=["just under", "just over"])
async def test_a_request_with_a_store(stored: Client, field: str, over: bool) -> None:
    script, app = reader()
    async with working(stored, app) as runs:
        sent = request(field, MAX_STORED + over)
        handle = await runs.start("reads", sent.pop("prompt"), **sent)
        if not over:
            assert (await handle.result())["output"] == "done"
            return
        failure = await failure_of(handle)
        assert (failure.type, failure.message) == ("InvalidRequest", REFUSED.format(MAX_STORED + 1, MAX_STORED))
    assert script.requests == []


@pytest.mark.parametrize("with_store", [False, True], ids=["no store", "store"])
async def test_the_client_refuses_a_request_at_once(client: Client, stored: Client, with_store: bool) -> None:
    perdure, most = PerdureClient(stored if with_store else client), MAX_STORED if with_store else MAX_PAYLOAD
    with pytest.raises(InvalidRequest) as raised:
        await perdure.start("reads", "x" * most)
    assert re.fullmatch(REFUSED.format(r"\d+", most), str(raised.value))


async def test_another_client_is_refused_by_temporal_itself(client: Client) -> None:
    """Over 2 MB nothing reaches a run without a store, so there is no run that could fail."""
    with pytest.raises(RPCError, match="Blob data size exceeds limit"):
        await client.start_workflow(
            "AgentWorkflow", {"agent": "reads", "prompt": "x" * 2_100_000}, id="x", task_queue="x"
        )


async def test_a_request_that_grows_as_json_is_measured_as_it_is_carried(client: Client) -> None:
    """`1e9` is written as 1000000000.0: what came in 1 MB is 3 MB now, and would fail the workflow task."""
    script, app = reader()
    async with working(client, app) as runs:
        numbers = b"[" + b",".join([b"1e9"] * 400_000) + b"]"
        sent = b'{"agent": "reads", "prompt": "", "metadata": {"x": ' + numbers + b"}}"
        handle: Handle = await client.start_workflow(
            "AgentWorkflow",
            RawValue(Payload(metadata={"encoding": b"json/plain"}, data=sent)),
            id="grows",
            task_queue=runs.task_queue,
        )
        assert (await failure_of(handle)).type == "InvalidRequest"
    assert script.requests == []


def picture(size: int) -> dict[str, Any]:
    """An image of so many bytes, as a stranger would send it."""
    data = base64.b64encode(b"\x89PNG" + bytes(size - 4)).decode()
    return {"kind": "binary", "data": data, "media_type": "image/png"}


def looker(seen: list[int]) -> App:
    """An agent that notes the sizes of the images of its prompt."""

    def look(asked: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        (part,) = asked[0].parts
        assert isinstance(part, UserPromptPart)
        seen.extend(len(one.data) for one in part.content if isinstance(one, BinaryContent))
        return ModelResponse(parts=[TextPart("seen")])

    return App(agents=[DurableAgent(Agent(FunctionModel(look), name="looks"), model_attempts=1)])


async def test_an_image_of_a_megabyte_as_prompt(client: Client, cache: int) -> None:
    seen: list[int] = []
    async with working(client, looker(seen), cache=cache) as runs:
        assert (await runs.run("looks", ["What is it?", picture(MB)]))["output"] == "seen"
        failure = await runs.failure("looks", ["What is it?", picture(MB + MB // 5)])
    assert seen == [MB]
    assert re.fullmatch(REFUSED.format(r"1600\d+", MAX_PAYLOAD), failure.message)


async def test_several_images_as_prompt_with_a_store(stored: Client, cache: int) -> None:
    seen: list[int] = []
    async with working(stored, looker(seen), cache=cache) as runs:
        assert (await runs.run("looks", ["What are they?", *[picture(MB)] * 5]))["output"] == "seen"
        failure = await runs.failure("looks", ["What are they?", *[picture(MB)] * 7])
    assert seen == [MB] * 5
    assert re.fullmatch(REFUSED.format(r"933\d+", MAX_STORED), failure.message)


def test_the_documentation_has_the_numbers() -> None:
    rows = {row.split("|")[1].strip(): row for row in PAGE.read_text().splitlines() if row.startswith("| ")}
    assert f"| {MAX_PAYLOAD / MB:g} MB | {MAX_STORED / MB:g} MB |" in rows["request: prompt, params, metadata together"]
    assert f"| {MAX_PAYLOAD / MB:g} MB | {MAX_STORED / MB:g} MB |" in rows["model response with the plan of its calls"]
    assert f"| {MAX_PAYLOAD / MB:g} MB | {MAX_PAYLOAD / MB:g} MB |" in rows["arguments of all calls of a step"]
    assert f"| {MAX_ANSWERS / MB:g} MB, an equal share" in rows["results of one step together"]
    assert f"({MIN_RESULT:,} bytes to {MAX_STORED / MB:g} MB)" in rows["tool result, as the model reads it"]
    assert f"| {MAX_KEPT / MB:g} MB |" in rows["result that is kept (`store`)"]
    assert f"| {MOST:,} characters |" in rows["page of `read_result`"]
    names = f"a name {MAX_NAME}, a reason {MAX_REASON:,}, a token {MAX_TOKEN:,} characters; {MAX_DEPTH} levels"
    assert names in rows["decision (`approve`, `deny`, `complete`)"]
    assert f"| {MAX_REFUSED} |" in rows["decisions on one call that came too late"]
    assert f"the last {MAX_REJECTED}, {MAX_REJECTED_TEXT:,} characters" in rows["signals that can't be used"]
    assert f"| {MAX_DETAILS // 1000} kB |" in rows["metadata of a call that its tool deferred"]
    assert f"| {MAX_TOLD // 1000} kB |" in rows["arguments in a notification and in the audit"]
    assert f"| {MAX_CALLS} calls, {MAX_SHOWN:,} bytes" in rows["what the Web UI shows of what waits"]
    assert f"| {MAX_AWAITED:,} bytes |" in rows["`AgentWaiting`"]
    assert f"| {MAX_TEXT:,} characters, {MAX_DETAILS // 1000} kB |" in rows["text of an error, details of an error"]
    assert f"the last {MAX_LIVE:,} characters" in rows["live text"]
    assert f"| {MAX_TAIL // 1024} KiB |" in rows["transcript sent along with a request"]
    assert f"| {MAX_HISTORY:,} events, {MAX_HISTORY_BYTES // MB} MB |" in rows["history of a run"]
    assert f"over {OFFLOADED // 1024} KiB is kept outside" in PAGE.read_text()


def test_the_documentation_has_the_words() -> None:
    text = "x" * 121_000
    assert head_and_tail(text, 20_000).split("\n")[1] in PAGE.read_text()
    assert "has 120000 bytes; a result may have 100000. Ask for" in PAGE.read_text()
