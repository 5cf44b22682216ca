"""Decisions that are large or deep: refused with a clear text, or carried; the run goes on either way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ToolCallPart
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.common import RawValue

from perdure import App, Approval, DurableAgent, ToolPolicy
from perdure.client import ClientError, PerdureClient
from perdure.errors import InvalidRequest
from tests.deciding import answers, pending, refused, update
from tests.harness import Handle, until, working
from tests.outside import outside
from tests.payloads import MB
from tests.scripts import Script
from tests.shop import shop

EDIT = Approval(allow_edit=True)


def nested(depth: int) -> str:
    """JSON of that many objects in each other."""
    return '{"a":' * depth + "1" + "}" * depth


def raw(text: str) -> RawValue:
    """JSON as it is, whether or not anything can read it."""
    return RawValue(Payload(metadata={"encoding": b"json/plain"}, data=text.encode()))


def notes(script: Script, ran: list[Any]) -> App:
    """A gated tool that takes any JSON."""
    tools = FunctionToolset[None](id="notes")

    @tools.tool_plain
    def note(data: Any) -> str:
        """Write down."""
        ran.append(data)
        return "noted"

    make: Any = Agent
    agent = make(script.model, name="notes", toolsets=[tools])
    return App(agents=[DurableAgent(agent, policies={"note": ToolPolicy(approval=EDIT)})])


async def unless_stuck(handle: Handle, sending: Coroutine[Any, Any, Any]) -> Any:
    """What was answered. Raises `AssertionError` where the workflow task fails instead, which Temporal then repeats."""
    task = asyncio.create_task(sending)

    async def known() -> bool:
        kinds = [event.event_type for event in (await handle.fetch_history()).events]
        return task.done() or EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED in kinds

    await until(known)
    if not task.done():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise AssertionError("the workflow task failed")
    return await task


@pytest.mark.parametrize("verb", ["approve", "deny"])
async def test_a_reason_of_a_megabyte_is_refused(client: Client, cache: int, verb: str) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        body = {"call": row["call"], "reason": "x" * MB}
        told = await refused(handle, verb, body)
        assert told.startswith("InvalidRequest: request.reason: String should have at most 10000 characters")
        await handle.signal(verb, body)
        (rejected,) = (await handle.query("status"))["rejected"]
        assert (rejected["signal"], f"InvalidRequest: {rejected['reason']}") == (verb, told)
        await update(handle, "approve", {"call": row["call"], "reason": "x" * 10_000})
        result = await handle.result()
    assert [one["event"] for one in result["audit"]] == ["asked", "approved", "ran"]
    assert ran == [("refund", 1)]


async def test_of_a_signal_that_cant_be_used_two_kilobytes_are_kept(client: Client, cache: int) -> None:
    script = Script({"refund": {"n": 1}}, "done")
    large: list[Any] = ["x" * MB, {"call": "x" * MB}, {"x" * MB: 1}, {"call": "1.1", "x": ["x" * MB]}]
    async with working(client, shop(script, []), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        for body in large:
            await handle.signal("approve", body)
        rejected = (await handle.query("status"))["rejected"]
        assert len(rejected) == len(large)
        assert all(20 < len(one["reason"]) < 2100 for one in rejected)
        await update(handle, "deny", {"call": row["call"]})
        await handle.result()


@pytest.mark.parametrize("depth", [10_000, 300])
async def test_json_that_is_too_deep_is_refused(client: Client, cache: int, depth: int) -> None:
    ran: list[Any] = []
    script = Script({"note": {"data": 1}}, "done")
    async with working(client, notes(script, ran), cache=cache) as runs:
        handle = await runs.start("notes", "go")
        (row,) = await pending(handle, 1)
        body = raw(f'{{"call": "{row["call"]}", "args": {{"data": {nested(depth)}}}}}')
        text = await refused(handle, "approve", body)
        assert text.startswith("InvalidRequest: expected one JSON object")
        assert "a payload that can't be read" in text
        await handle.signal("approve", body)
        assert (await handle.query("status"))["rejected_count"] == 1
        assert [one["call"] for one in await pending(handle, 1)] == [row["call"]]
        await update(handle, "approve", {"call": row["call"]})
        await handle.result()
    assert ran == [1]


@pytest.mark.parametrize("depth", [10_000, 300])
async def test_a_result_that_is_too_deep_is_refused(client: Client, depth: int) -> None:
    async with working(client, outside(Script({"outside": {}}, "done"), model_attempts=1)) as runs:
        handle = await runs.start("out", "go")
        (row,) = await pending(handle, 1)
        assert "can't be read" in await refused(
            handle, "complete", raw(f'{{"call": "{row["call"]}", "result": {nested(depth)}}}')
        )
        await update(handle, "complete", {"call": row["call"], "result": 1})
        await handle.result()


async def test_large_edited_arguments_and_results_are_carried(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"note": {"data": 1}}, "done")
    async with working(client, notes(script, ran), cache=cache) as runs:
        handle = await runs.start("notes", "go")
        (row,) = await pending(handle, 1)
        await update(handle, "approve", {"call": row["call"], "args": {"data": "y" * MB}})
        (edited,) = [one for one in (await handle.result())["audit"] if one["event"] == "edited"]
    assert ran == ["y" * MB]
    assert edited["original_args"] == {"data": 1}
    assert edited["args"]["left_out"].startswith(f"{MB + 11} bytes")
    async with working(client, outside(Script({"outside": {}}, "done"), model_attempts=1), cache=cache) as runs:
        handle = await runs.start("out", "go")
        (row,) = await pending(handle, 1)
        await update(handle, "complete", {"call": row["call"], "result": "z" * 1_400_000})
        await handle.result()
        assert await answers(handle) == {"c0.0": ("success", "z" * 1_400_000)}


@pytest.mark.parametrize("field", ["x" * MB, "call"])
async def test_a_refusal_is_cut(client: Client, field: str) -> None:
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), []), check=False) as runs:
        handle = await runs.start("shop", "go")
        await pending(handle, 1)
        with pytest.raises(WorkflowUpdateFailedError) as raised:
            await unless_stuck(handle, update(handle, "approve", {field: "x" * 1_050_000 if field == "call" else 1}))
        assert len(str(raised.value.cause)) < 30_000


async def test_the_client_refuses_to_send_what_temporal_cant_carry(client: Client) -> None:
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), []), check=False) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        with pytest.raises((ClientError, InvalidRequest)):
            await unless_stuck(handle, PerdureClient(client).run(handle.id).deny(row["call"], reason="x" * 2_100_000))


async def test_a_name_of_a_megabyte_is_refused(client: Client) -> None:
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), []), check=False) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        assert "InvalidRequest" in await refused(handle, "approve", {"call": row["call"], "by": "x" * MB})


async def test_an_edit_beside_large_arguments_is_refused(client: Client) -> None:
    script = Script({"refund": {"n": 1, "note": "x" * 700_000}}, "done")
    async with working(client, shop(script, [], EDIT), check=False) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        body = {"call": row["call"], "args": {"n": 2, "note": "y" * 1_500_000}}
        with pytest.raises(WorkflowUpdateFailedError):
            await unless_stuck(handle, update(handle, "approve", body))


async def test_edits_of_several_calls_together_never_end_the_run(client: Client) -> None:
    script = Script([ToolCallPart("refund", {"n": n}) for n in range(3)], "done")
    app = shop(script, [], Approval(allow_edit=True, quorum=2))
    async with working(client, app, check=False) as runs:
        handle = await runs.start("shop", "go")
        keys = [row["call"] for row in await pending(handle, 3)]
        for key in keys:
            with contextlib.suppress(WorkflowUpdateFailedError):
                await update(handle, "approve", {"call": key, "by": "ann", "args": {"n": 7, "note": "y" * 1_600_000}})
    for key in keys:
        await handle.signal("approve", {"call": key, "by": "ann"})
        await handle.signal("approve", {"call": key, "by": "bob"})
    async with working(client, app, task_queue=runs.task_queue, check=False):
        assert (await handle.result())["output"] == "done"


async def test_a_result_that_is_almost_too_deep_doesnt_end_the_run(client: Client) -> None:
    async with working(client, outside(Script({"outside": {}}, "done"), model_attempts=1), check=False) as runs:
        handle = await runs.start("out", "go")
        (row,) = await pending(handle, 1)
        with contextlib.suppress(WorkflowUpdateFailedError):
            await update(handle, "complete", raw(f'{{"call": "{row["call"]}", "result": {nested(196)}}}'))
            assert (await handle.result())["output"] == "done"


async def test_arguments_that_are_almost_too_deep_leave_the_result_readable(client: Client) -> None:
    async with working(client, notes(Script({"note": {"data": 1}}, "done"), []), check=False) as runs:
        handle = await runs.start("notes", "go")
        (row,) = await pending(handle, 1)
        with contextlib.suppress(WorkflowUpdateFailedError):
            await update(handle, "approve", raw(f'{{"call": "{row["call"]}", "args": {{"data": {nested(197)}}}}}'))
            assert isinstance(await handle.result(), dict)
