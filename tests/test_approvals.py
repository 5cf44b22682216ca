"""Calls that wait for a person: cases A, B, C, who decides, and edited arguments."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import App, Approval, DurableAgent, ToolPolicy
from tests.deciding import answers, pending, refused, update
from tests.harness import activities, until, working
from tests.scripts import Script
from tests.shop import shop


async def test_case_a1_a_harmless_call_runs_while_its_sibling_waits(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script([ToolCallPart("look", {"n": 1}), ToolCallPart("refund", {"n": 2})], "done")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        await until(lambda: ran == [("look", 1)])
        assert (row["tool"], row["args"], row["kind"]) == ("refund", {"n": 2, "note": "none"}, "approval")

        async def waits() -> bool:
            return (await handle.query("status"))["state"] == "waiting"

        await until(waits)
        await update(handle, "approve", {"call": row["call"], "by": "ann"})
        assert (await handle.result())["output"] == "done"
        assert await answers(handle) == {"c0.0": ("success", "saw 1"), "c0.1": ("success", "refunded 2")}
    assert ran == [("look", 1), ("refund", 2)]
    assert len(script.requests) == 2


async def test_case_a2_two_calls_of_one_tool_are_decided_each_by_its_key(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script([ToolCallPart("refund", {"n": 1}), ToolCallPart("refund", {"n": 2})], "done")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        one, two = await pending(handle, 2)
        await update(handle, "approve", {"call": two["call"]})
        await until(lambda: ran == [("refund", 2)])
        await update(handle, "approve", {"call": one["call"]})
        await handle.result()
        assert list(await answers(handle)) == ["c0.0", "c0.1"]
    assert ran == [("refund", 2), ("refund", 1)]


async def test_case_b1_equal_ids_are_two_calls_with_two_decisions(client: Client, cache: int) -> None:
    ran: list[Any] = []
    same: list[Any] = [
        ToolCallPart("delete", {"n": 1}, tool_call_id="dup"),
        ToolCallPart("refund", {"n": 2}, tool_call_id="dup"),
    ]
    script = Script(same, "done")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        delete, refund = await pending(handle, 2)
        assert delete["call"] != refund["call"]
        assert not ran
        await update(handle, "deny", {"call": delete["call"], "reason": "keep it"})
        await update(handle, "approve", {"call": refund["call"]})
        await handle.result()
        assert len(await answers(handle)) == 2
    assert ran == [("refund", 2)]


async def test_case_b3_the_first_decision_wins_and_later_ones_are_told_so(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    app = shop(script, ran)
    async with working(client, app, cache=cache, check=False) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
    for _ in range(3):
        await handle.signal("approve", {"call": row["call"], "by": "ann"})
    await handle.signal("deny", {"call": row["call"], "by": "bob"})
    async with working(client, app, cache=cache, task_queue=runs.task_queue) as again:
        again.handles.append(handle)
        assert (await handle.result())["output"] == "done"
        rejected = (await handle.query("status"))["rejected"]
    assert ran == [("refund", 1)]
    assert [one["signal"] for one in rejected] == ["approve", "approve", "deny"]
    assert all("already decided" in one["reason"] for one in rejected)


async def test_case_c1_a_denial_is_a_result_that_the_model_reads(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script([ToolCallPart("refund", {"n": 1}), ToolCallPart("delete", {"n": 2})], "I see.")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        one, two = await pending(handle, 2)
        await handle.signal("deny", {"call": one["call"], "reason": "too much"})
        await update(handle, "deny", {"call": two["call"], "reason": "no"})
        result = await handle.result()
        assert result["output"] == "I see."
        assert await answers(handle) == {"c0.0": ("denied", "too much"), "c0.1": ("denied", "no")}
        assert await activities(handle) == ["model_request", "model_request"]
    assert not ran
    assert [(row["event"], row.get("by", "")) for row in result["audit"]].count(("denied", "")) == 2


async def test_a_tool_that_asks_for_itself_runs_to_the_question_and_once_more(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"asks": {"n": 1}}, "done")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        assert row["metadata"] == {"why": "large"}
        await update(handle, "approve", {"call": row["call"]})
        assert (await handle.result())["output"] == "done"
        assert await activities(handle) == ["model_request", "tool:asks", "tool:asks", "model_request"]
    assert ran == [("asks", {"why": "large"})]


@pytest.mark.parametrize(("n", "asked"), [(5, False), (50, True), (-1, True)])
async def test_a_predicate_decides_on_validated_arguments_and_fails_closed(client: Client, n: int, asked: bool) -> None:
    def large(_: Any, args: dict[str, Any]) -> bool:
        if args["n"] < 0:
            raise RuntimeError("a fault of the predicate")
        return args["n"] > 10

    ran: list[Any] = []
    tools = FunctionToolset[None](id="pay")

    @tools.tool_plain
    def pay(n: int) -> str:
        """Pay."""
        ran.append(n)
        return "paid"

    make: Any = Agent
    agent = make(Script({"pay": {"n": str(n)}}, "done").model, name="pay", toolsets=[tools])
    app = App(agents=[DurableAgent(agent, policies={"pay": ToolPolicy(approval=Approval(when=large))})])
    async with working(client, app) as runs:
        handle = await runs.start("pay", "go")
        if asked:
            (row,) = await pending(handle, 1)
            assert not ran
            await update(handle, "approve", {"call": row["call"]})
        await handle.result()
    assert ran == [n]


async def test_quorum_and_approvers(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    approval = Approval(approvers=["ann", "bob"], quorum=2)
    async with working(client, shop(script, ran, approval), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        key = row["call"]
        assert "NotAllowed: 'eve' may not decide" in await refused(handle, "approve", {"call": key, "by": "eve"})
        for _ in range(2):
            answer = await update(handle, "approve", {"call": key, "by": "ann"})
            assert (answer["outcome"], answer["needed"]) == ("voted", 1)
        answer = await update(handle, "approve", {"call": key, "by": "bob"})
        assert answer["outcome"] == "approved"
        await handle.result()
    assert ran == [("refund", 1)]


async def test_a_refusal_names_what_waits(client: Client) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    async with working(client, shop(script, ran)) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        key = row["call"]
        assert f"Pending: ['{key}']" in await refused(handle, "approve", {"call": "9.9-0000"})
        assert f"did you mean '{key}'" in await refused(handle, "approve", {"call": key.split("-")[0]})
        assert "InvalidRequest" in await refused(handle, "approve", {"cal": key})
        assert "allow_edit=False" in await refused(handle, "approve", {"call": key, "args": {"n": 2}})
        assert "use approve or deny" in await refused(handle, "complete", {"call": key, "result": 1})
        assert "characters" in await refused(handle, "deny", {"call": key, "reason": "x" * 20_000})
        await handle.signal("approve", {"call": "9.9-0000"})
        await update(handle, "approve", {"call": key})
        await handle.result()
        assert (await handle.query("status"))["rejected_count"] == 1
    assert ran == [("refund", 1)]


async def test_edited_arguments_are_validated_before_they_are_accepted(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    async with working(client, shop(script, ran, Approval(allow_edit=True)), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        text = await refused(handle, "approve", {"call": row["call"], "args": {"n": "many"}})
        assert text.startswith("InvalidRequest")
        assert "n: Input should be a valid integer" in text
        await update(handle, "approve", {"call": row["call"], "args": {"n": "7"}, "by": "ann"})
        result = await handle.result()
    assert ran == [("refund", 7)]
    edited, approved = [one for one in result["audit"] if one["event"] in ("edited", "approved")]
    assert (edited["call"], edited["by"]) == (row["call"], "ann")
    assert edited["args"] == {"n": 7, "note": "none"}
    assert edited["original_args"] == {"n": 1, "note": "none"}
    assert approved["call"] == edited["new_call"] != row["call"]
