"""What becomes of a call that somebody else's activity makes, where that fails, is lost, or is cancelled."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ToolCallPart
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from perdure import App, DurableAgent, ToolPolicy
from perdure.toolsets.temporal import TemporalTools
from tests.harness import Handle, attempts, failure_of, until, working
from tests.remote import Warehouse, remote
from tests.scripts import Script
from tests.sessions import SESSION, closed, send, turn
from tests.test_approvals import answers, cancelled, update


class Quote(BaseModel):
    cents: int


async def which(which: str) -> None:
    """Anything."""


async def reserve(order: dict[str, Any]) -> None:
    """Reserve."""


def depot(queue: str, script: Script, policies: dict[str, ToolPolicy] | None = None, **options: Any) -> App:
    """An agent with the activities that can be made to fail, and one tool of its own that ends the run."""
    tools = TemporalTools("depot", task_queue=queue)
    tools.activity("ReserveStock", name="reserve", signature=reserve, **options)
    tools.activity("HoldParcel", name="hold", signature=which)
    tools.activity("HoldParcel", name="beat", signature=which, heartbeats=True)
    tools.activity("Answer", name="answer", signature=which, **options)
    tools.activity("Nowhere", name="nowhere", signature=which)
    own = FunctionToolset[None](id="own")

    @own.tool_plain
    def ends() -> None:
        """Ends the run."""
        raise ApplicationError("over", type="Over", non_retryable=True)

    agent = Agent(script.model, name="depot", toolsets=[tools, own])
    return App(agents=[DurableAgent(agent, policies=policies or {})])


async def only(handle: Handle) -> tuple[str, str]:
    """Outcome and text of the one call of a run."""
    ((outcome, text),) = (await answers(handle)).values()
    return outcome, text


async def only_holds(handle: Handle) -> bool:
    """Whether nothing but the parcel is held."""
    pending = (await handle.describe()).raw_description.pending_activities
    return [activity.activity_type.name for activity in pending] == ["HoldParcel"]


@pytest.mark.parametrize(
    ("sku", "options", "text"),
    [
        ("none", {}, "The call failed: OutOfStock."),
        ("none", {"tells_errors": True}, "The call failed: OutOfStock: password=hunter2"),
        ("told", {}, "That sku is retired: use B-2."),
    ],
    ids=["redacted", "told", "tool_failed"],
)
async def test_an_error_is_told_by_its_type(client: Client, sku: str, options: dict[str, Any], text: str) -> None:
    warehouse = Warehouse()
    script = Script({"reserve": {"order": {"sku": sku}}}, "done")
    policies = {"reserve": ToolPolicy(effect="safe", backoff=0.1)}
    async with remote(client, [warehouse.reserve]) as queue:
        async with working(client, depot(queue, script, policies, **options)) as runs:
            handle = await runs.start("depot", "go")
            await handle.result()
            assert await only(handle) == ("failed", text)
    assert len(warehouse.ran) == 1, "neither is repeated: one is non-retryable, the other meant for the model"


async def test_a_type_that_nobody_serves_there_is_told(client: Client) -> None:
    script = Script({"nowhere": {"which": "x"}}, "done")
    async with remote(client, [Warehouse().ping]) as queue:
        async with working(client, depot(queue, script)) as runs:
            handle = await runs.start("depot", "go")
            await handle.result()
            assert await only(handle) == ("failed", "The call failed: NotFoundError.")


@pytest.mark.parametrize(("effect", "tries"), [("unsafe", 1), ("idempotent", 3)])
async def test_it_is_repeated_by_its_effect_with_the_same_id(
    client: Client, cache: int, effect: Any, tries: int
) -> None:
    warehouse = Warehouse()
    script = Script({"hold": {"which": "flaky"}}, "done")
    policies = {"hold": ToolPolicy(effect=effect, backoff=0.1)}
    async with remote(client, [warehouse.hold]) as queue:
        async with working(client, depot(queue, script, policies), cache=cache) as runs:
            handle = await runs.start("depot", "go")
            await handle.result()
            expected = ("failed", "The call failed: ConnectionError.") if tries == 1 else ("success", "held")
            assert await only(handle) == expected
            assert (await attempts(handle))[1] == tries
    assert len(warehouse.ran) == tries
    assert len(set(warehouse.ids)) == 1


async def test_a_lost_attempt_of_an_unsafe_call_is_unknown(client: Client) -> None:
    script = Script({"hold": {"which": "lost"}}, "done")
    async with remote(client, [Warehouse().hold]) as queue:
        async with working(client, depot(queue, script)) as runs:
            handle = await runs.start("depot", "go")
            await handle.result()
            outcome, text = await only(handle)
            assert outcome == "interrupted"
            assert text.endswith("may not have run. Check before you repeat it.")


async def test_the_timeout_is_one_attempts_time(client: Client) -> None:
    warehouse = Warehouse()
    script = Script({"hold": {"which": "x"}}, "done")
    async with remote(client, [warehouse.hold]) as queue:
        async with working(client, depot(queue, script, {"hold": ToolPolicy(timeout=0.5)})) as runs:
            handle = await runs.start("depot", "go")
            await handle.result()
            outcome, text = await only(handle)
            assert (outcome, text[:29]) == ("interrupted", "The call did not end in time.")
            warehouse.go.set()


async def test_a_queue_without_a_worker_is_waited_for_or_not(client: Client, cache: int) -> None:
    warehouse = Warehouse()
    warehouse.go.set()
    script = Script(
        [ToolCallPart("hold", {"which": "x"}, tool_call_id="c1"), ToolCallPart("answer", {"which": "x"}, "c2")], "done"
    )
    queue = "a queue whose worker comes later"
    policies = {"answer": ToolPolicy(schedule_to_start=0.2)}
    async with working(client, depot(queue, script, policies), cache=cache) as runs:
        handle = await runs.start("depot", "go")

        await until(lambda: only_holds(handle))
        async with remote(client, [warehouse.hold], task_queue=queue):
            await handle.result()
        assert await answers(handle) == {
            "c1": ("success", "held"),
            "c2": ("failed", "The call was never started: no worker took it in time."),
        }


@pytest.mark.parametrize("tool", ["hold", "beat"])
async def test_a_cancelled_run_waits_for_the_grace_and_no_longer(client: Client, cache: int, tool: str) -> None:
    warehouse = Warehouse()
    script = Script({tool: {"which": "beats" if tool == "beat" else "x"}})
    policies = {tool: ToolPolicy(cancel_grace=0.5, heartbeat=2)}
    async with remote(client, [warehouse.hold]) as queue:
        async with working(client, depot(queue, script, policies), cache=cache) as runs:
            handle = await runs.start("depot", "go")
            await until(lambda: len(warehouse.ran) == 1)
            await cancelled(handle)
            outcome, text = await only(handle)
            assert (outcome, text[:22]) == ("interrupted", "The run was cancelled.")
            assert not warehouse.go.is_set()
            warehouse.go.set()


async def test_an_interrupted_turn_gives_its_call_up_and_the_session_goes_on(client: Client, cache: int) -> None:
    warehouse = Warehouse()
    script = Script({"hold": {"which": "x"}}, "better")
    policies = {"hold": ToolPolicy(cancel_grace=0.3)}
    async with remote(client, [warehouse.hold]) as queue:
        async with working(client, depot(queue, script, policies), cache=cache) as runs:
            handle = await runs.start("depot", "go", **SESSION)
            await until(lambda: len(warehouse.ran) == 1)
            await update(handle, "interrupt", {})
            assert (await turn(handle, turn=1))["state"] == "interrupted"
            await send(handle, "again")
            assert (await turn(handle, turn=2))["output"]["value"] == "better"
            warehouse.go.set()
            assert (await closed(handle))["turns"] == 2


async def test_a_sibling_that_ends_the_run_waits_for_the_call(client: Client) -> None:
    warehouse = Warehouse()
    script = Script([ToolCallPart("hold", {"which": "x"}, "c1"), ToolCallPart("ends", {}, "c2")])
    async with remote(client, [warehouse.hold]) as queue:
        async with working(client, depot(queue, script)) as runs:
            handle = await runs.start("depot", "go")
            await until(lambda: len(warehouse.ran) == 1)

            await until(lambda: only_holds(handle))
            warehouse.go.set()
            assert (await failure_of(handle)).type == "Over"
            assert (await answers(handle))["c1"] == ("success", "held")


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
    options = {} if declared == "policy" else {"output_model": Quote}
    if declared == "schema":
        options["output_model"] = Quote.model_json_schema()  # type: ignore[assignment]
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
