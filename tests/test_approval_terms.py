"""The terms of an approval where several calls wait, and what is around them: ends, caps, sizes, pages."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelResponsePart, ToolCallPart
from temporalio.client import Client

from perdure import App, Approval, DeclarationError, DurableAgent, ToolPolicy
from perdure.client import PerdureClient
from tests.deciding import answers, cancelled, pending, refused, update
from tests.harness import Handle, failure_of, until, working
from tests.scripts import Script
from tests.shop import shop


async def test_a_call_that_ends_the_run_lets_nothing_else_wait_or_begin(client: Client, cache: int) -> None:
    ran: list[Any] = []
    approval = Approval(expires_after=timedelta(seconds=0.5), on_expiry="fail")
    script = Script([ToolCallPart("refund", {"n": 1}), ToolCallPart("delete", {"n": 2})])
    async with working(client, shop(script, ran, approval), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        assert (await failure_of(handle)).type == "ApprovalExpired"
        assert [outcome for outcome, _ in (await answers(handle)).values()] == ["denied", "interrupted"]
        events = [row["event"] for row in await handle.query("audit")]
    assert events == ["asked", "asked", "expired", "cancelled"]
    assert not ran


async def test_approved_calls_keep_to_the_cap(client: Client) -> None:
    open_now, most = 0, 0
    tools = FunctionToolset[None](id="slow")

    @tools.tool_plain
    async def slow(n: int) -> str:
        """Takes its time."""
        nonlocal open_now, most
        open_now, most = open_now + 1, max(most, open_now + 1)
        await asyncio.sleep(0.1)
        open_now -= 1
        return str(n)

    calls: list[ModelResponsePart] = [ToolCallPart("slow", {"n": n}) for n in range(5)]
    make: Any = Agent
    agent = make(Script(calls, "done").model, name="slow", toolsets=[tools])
    durable = DurableAgent(agent, policies={"slow": ToolPolicy(approval=Approval())}, max_parallel_calls=2)
    async with working(client, App(agents=[durable])) as runs:
        handle = await runs.start("slow", "go")
        for row in await pending(handle, 5):
            await handle.signal("approve", {"call": row["call"]})
        await handle.result()
    assert most == 2


async def test_arguments_may_be_edited_to_none(client: Client) -> None:
    ran: list[Any] = []
    tools = FunctionToolset[None](id="maybe")

    @tools.tool_plain
    def maybe(n: int = 7) -> str:
        """Has a default."""
        ran.append(n)
        return "ok"

    make: Any = Agent
    agent = make(Script({"maybe": {"n": 1}}, "done").model, name="maybe", toolsets=[tools])
    app = App(agents=[DurableAgent(agent, policies={"maybe": ToolPolicy(approval=Approval(allow_edit=True))})])
    async with working(client, app) as runs:
        handle = await runs.start("maybe", "go")
        (row,) = await pending(handle, 1)
        await update(handle, "approve", {"call": row["call"], "args": {}})
        await handle.result()
    assert ran == [7]


async def test_many_approvers_fit_into_the_search_attribute(client: Client) -> None:
    approval = Approval(approvers=[f"somebody-with-a-long-name-{n}@example.com" for n in range(90)])
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), [], approval)) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        await update(handle, "approve", {"call": row["call"], "by": approval.approvers[-1]})
        assert (await handle.result())["output"] == "done"


async def test_an_audit_of_any_size_is_read(client: Client) -> None:
    calls: list[ModelResponsePart] = [ToolCallPart("refund", {"n": n, "note": "x" * 9_000}) for n in range(60)]
    async with working(client, shop(Script(calls, calls, "done"), [])) as runs:
        handle = await runs.start("shop", "go")
        for step in (1, 2):
            await until(lambda step=step: _all_wait(handle, step), seconds=60)
            for row in await handle.query("pending"):
                await handle.signal("deny", {"call": row["call"], "reason": "y" * 9_900})
        result = await handle.result()
        assert result["audit"] == [{"left_out": 240}]
        rows = await PerdureClient(client).run(handle.id).audit()
    assert [row["event"] for row in rows] == (["asked"] * 60 + ["denied"] * 60) * 2


async def _all_wait(handle: Handle, step: int) -> bool:
    return [row["call"].split(".")[0] for row in await handle.query("pending")] == [str(step)] * 60


async def test_nobody_approves_their_own_where_nobody_said_who_started_it(client: Client) -> None:
    async with working(client, shop(Script("x"), [], Approval(forbid_self=True))) as runs:
        failure = await runs.failure("shop", "go")
        assert (failure.type, "say who starts the run in 'by'" in failure.message) == ("InvalidRequest", True)


async def test_names_are_the_same_in_any_case(client: Client) -> None:
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), [], Approval(forbid_self=True))) as runs:
        handle = await runs.start("shop", "go", by="Ann")
        (row,) = await pending(handle, 1)
        assert "'ann' started the run" in await refused(handle, "approve", {"call": row["call"], "by": "ann"})
        await cancelled(handle)


async def test_late_decisions_are_kept_as_far_as_they_are_few(client: Client) -> None:
    script = Script([ToolCallPart("refund", {"n": 1}), ToolCallPart("delete", {"n": 2})], "done")
    async with working(client, shop(script, [])) as runs:
        handle = await runs.start("shop", "go")
        one, two = await pending(handle, 2)
        await update(handle, "approve", {"call": one["call"]})
        for _ in range(25):
            await refused(handle, "deny", {"call": one["call"], "by": "eve"})
        rows = [row for row in await handle.query("audit") if row["event"] == "refused"]
        assert [(row["decision"], row["claimed_by"]) for row in rows] == [("deny", "eve")] * 20
        await update(handle, "deny", {"call": two["call"]})
        await handle.result()


def test_what_nobody_would_ask_is_refused() -> None:
    later = Approval(when=lambda _, __: True)
    with pytest.raises(DeclarationError, match="escalate_to=Approval"):
        Approval(expires_after=timedelta(hours=1), on_expiry="escalate", escalate_to=later)
