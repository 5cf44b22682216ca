"""What others return: read whoever wrote it, bounded, and checked against what was declared."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai.messages import ToolReturnPart
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.common import RawValue

from perdure import ToolPolicy
from tests.deciding import only
from tests.depot import Quote, depot
from tests.harness import failure_of, working
from tests.remote import Warehouse, remote
from tests.scripts import Script


def raw(encoding: str, data: bytes) -> RawValue:
    return RawValue(Payload(metadata={"encoding": encoding.encode()}, data=data))


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (raw("binary/plain", b"\xff"), "The call ran, but its result can't be used: it is written as 'binary/plain'"),
        (raw("json/plain", b"{"), "The call ran, but its result can't be used: "),
        (raw("json/plain", b"[" * 5000 + b"]" * 5000), "The call ran, but its result can't be used: "),
        (raw("json/plain", b"NaN"), "The call ran, but its result can't be used: values that hold a number that isn't"),
        (raw("json/plain", b'"\\ud800"'), "The call ran, but its result can't be used: "),
        ("x" * 2000, "The call ran, but its result has 2002 bytes; it may have 1500."),
    ],
    ids=["bytes", "broken", "deep", "nan", "surrogate", "large"],
)
async def test_a_result_that_cant_be_used_is_told(client: Client, result: Any, text: str) -> None:
    warehouse = Warehouse()
    warehouse.results["x"] = result
    script = Script({"answer": {"which": "x"}}, "done")
    policies = {"answer": ToolPolicy(max_result_bytes=1500, effect="safe")}
    async with remote(client, [warehouse.answer]) as queue:
        async with working(client, depot(queue, script, policies)) as runs:
            handle = await runs.start("depot", "go")
            await handle.result()
            outcome, told = await only(handle)
            assert (outcome, told[: len(text)]) == ("failed", text)
    assert len(warehouse.ran) == 1


SHAPES: dict[str, Any] = {
    "file": {"kind": "binary", "data": "aGk=", "media_type": "image/png"},
    "listed": [{"kind": "binary", "data": "aGk=", "media_type": "image/png"}, "x"],
    "mapped": {"a": {"kind": "binary", "data": "aGk=", "media_type": "image/png"}},
    "kind": {"kind": "sofa"},
    "text": "",
    "no": False,
    "large": 10**400,
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_json_reaches_the_model_as_json(client: Client, shape: str) -> None:
    warehouse = Warehouse()
    warehouse.results["x"] = SHAPES[shape]
    script = Script({"answer": {"which": "x"}}, "done")
    async with remote(client, [warehouse.answer]) as queue:
        async with working(client, depot(queue, script)) as runs:
            await (await runs.start("depot", "go")).result()
    (part,) = script.requests[-1][-1].parts
    assert isinstance(part, ToolReturnPart)
    assert part.content_items(mode="str") == [part.model_response_str()], "no file among it"
    text = part.model_response_str()
    assert (text if isinstance(SHAPES[shape], str) else json.loads(text)) == SHAPES[shape]


async def test_protobuf_as_json_is_read(client: Client) -> None:
    warehouse = Warehouse()
    warehouse.results["x"] = raw("json/protobuf", b'{"cents": 3}')
    script = Script({"answer": {"which": "x"}}, "done")
    async with remote(client, [warehouse.answer]) as queue:
        async with working(client, depot(queue, script, output_model=Quote)) as runs:
            handle = await runs.start("depot", "go")
            await handle.result()
            assert await only(handle) == ("success", '{"cents":3}')


@pytest.mark.parametrize("declared", ["tool", "policy", "schema"])
async def test_a_result_that_breaks_its_contract_ends_the_run(client: Client, cache: int, declared: str) -> None:
    warehouse = Warehouse()
    warehouse.results |= {"good": {"cents": 3}, "bad": {"cents": "many"}}
    script = Script({"answer": {"which": "good"}}, {"answer": {"which": "bad"}})
    options: dict[str, Any] = {} if declared == "policy" else {"output_model": Quote}
    if declared == "schema":
        options["output_model"] = Quote.model_json_schema()
    policies = {"answer": ToolPolicy(result=Quote)} if declared == "policy" else {}
    async with remote(client, [warehouse.answer]) as queue:
        async with working(client, depot(queue, script, policies, **options), cache=cache) as runs:
            handle = await runs.start("depot", "go")
            error = await failure_of(handle)
            assert error.type == "ToolContractViolation"
            assert error.non_retryable
            assert "cents" in error.message
    assert [asked for _, asked in warehouse.ran] == ["good", "bad"]
    assert len(script.requests) == 2, "the model isn't asked to mend it"
