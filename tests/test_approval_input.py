"""What people and programs send to decide, in any shape and at the wrong time: it is refused, and the run goes on."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.service import RPCError

from perdure import Approval
from tests.deciding import answers, pending, refused, update
from tests.harness import Runs, working
from tests.reading import events
from tests.scripts import Script
from tests.shop import shop

VERBS = ("approve", "deny", "complete")
BAD: dict[str, tuple[list[Any], str]] = {
    "nothing": ([], "got 0 arguments"),
    "two": ([{}, {}], "got 2 arguments"),
    "text": (["1.1"], "got str"),
    "list": ([["1.1"]], "got list"),
    "number": ([7], "got int"),
    "fraction": ([0.5], "got float"),
    "true": ([True], "got bool"),
    "null": ([None], "got NoneType"),
    "empty": ([{}], "request.call: Field required"),
    "null_call": ([{"call": None}], "request.call: Input should be a valid string"),
    "number_call": ([{"call": 1.1}], "request.call: Input should be a valid string"),
    "list_call": ([{"call": ["1.1"]}], "request.call: Input should be a valid string"),
    "null_by": ([{"call": "1.1", "by": None}], "request.by: Input should be a valid string"),
    "unknown_field": ([{"call": "1.1", "tokn": "x"}], "request.tokn: Extra inputs are not permitted"),
    "empty_call": ([{"call": ""}], "no call '' waits"),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_arguments_of_any_shape_are_refused_and_the_run_goes_on(client: Client, cache: int, verb: str) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        for args, named in BAD.values():
            with pytest.raises(WorkflowUpdateFailedError) as raised:
                await handle.execute_update(verb, args=args)  # pyright: ignore[reportUnknownMemberType]
            assert named in str(raised.value.cause)
        assert EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED not in await events(handle)
        for args, _ in BAD.values():
            await handle.signal(verb, args=args)
        rejected = (await handle.query("status"))["rejected"]
        assert [one["signal"] for one in rejected] == [verb] * len(BAD)
        for one, (_, named) in zip(rejected, BAD.values(), strict=True):
            assert named in one["reason"]
        assert await pending(handle, 1) == [row]
        await update(handle, "approve", {"call": row["call"]})
        result = await handle.result()
    assert [one["event"] for one in result["audit"]] == ["asked", "approved", "ran"]
    assert ran == [("refund", 1)]


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("args", {"n": 2}, "deny takes no args"),
        ("args", [], "request.args: Input should be a valid dictionary"),
        ("reason", None, "request.reason"),
        ("result", 1, "request.result: Extra inputs are not permitted"),
        ("error", "x", "request.error: Extra inputs are not permitted"),
    ],
)
async def test_a_denial_takes_only_what_a_denial_needs(client: Client, field: str, value: Any, named: str) -> None:
    script = Script({"refund": {"n": 1}}, "done")
    async with working(client, shop(script, [], Approval(allow_edit=True))) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        assert named in await refused(handle, "deny", {"call": row["call"], field: value})
        await handle.signal("deny", {"call": row["call"], field: value})
        assert (await handle.query("status"))["rejected_count"] == 1
        await update(handle, "deny", {"call": row["call"]})
        await handle.result()


async def test_decisions_before_the_model_has_answered_are_kept_as_rejected(client: Client, cache: int) -> None:
    """The key is the right one, guessed: what hasn't been shown to anybody can't be decided."""
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    runs = Runs(client, f"q-{uuid.uuid4().hex[:12]}")
    guessed = {"call": "1.1-120e2279", "by": "ann"}
    handle = await runs.start("shop", "go")
    for verb in ("approve", "deny", "approve", "complete"):
        await handle.signal(verb, guessed)
    early = asyncio.create_task(refused(handle, "approve", guessed))
    async with working(client, shop(script, ran), cache=cache, task_queue=runs.task_queue) as begun:
        begun.handles.append(handle)
        (row,) = await pending(handle, 1)
        assert row["call"] == guessed["call"]
        assert "NotPending" in await early
        rejected = (await handle.query("status"))["rejected"]
        assert [one["signal"] for one in rejected] == ["approve", "deny", "approve", "complete"]
        assert all("no call '1.1-120e2279' waits" in one["reason"] for one in rejected)
        assert not ran
        await update(handle, "deny", guessed | {"reason": "no"})
        await handle.result()
        assert await answers(handle) == {"c0.0": ("denied", "no")}
    assert not ran


@pytest.mark.parametrize("verb", VERBS)
async def test_the_server_itself_refuses_what_comes_after_the_end(client: Client, verb: str) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    async with working(client, shop(script, ran)) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        await update(handle, "approve", {"call": row["call"]})
        await handle.result()
        with pytest.raises(RPCError, match="already completed"):
            await handle.signal(verb, {"call": row["call"]})
        with pytest.raises(RPCError, match="already completed"):
            await update(handle, verb, {"call": row["call"]})
        assert (await handle.query("status"))["rejected_count"] == 0
    assert ran == [("refund", 1)]
