"""Policies of tools that others serve: gates, barriers, and what is refused when they are declared."""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponsePart, ToolCallPart
from temporalio.client import Client

from perdure import App, Approval, DurableAgent, ToolPolicy
from perdure.toolsets.temporal import TemporalTools
from tests.deciding import answers, pending, refused, update
from tests.harness import activities, working
from tests.remote import Warehouse, remote
from tests.scripts import Script
from tests.shipping import Order, ping, quote_shipping


def clerk(queue: str, script: Script, **policies: ToolPolicy) -> App:
    tools = TemporalTools("shipping", task_queue=queue)
    tools.activity("ReserveStock", name="reserve", description="Reserve.", input_model=Order)
    tools.activity("QuoteShipping", name="quote", signature=quote_shipping, sequential=True)
    tools.activity("Ping", name="ping", signature=ping)
    agent = Agent(script.model, name="clerk", toolsets=[tools.prefixed("wh")])
    return App(agents=[DurableAgent(agent, policies={f"wh_{name}": policy for name, policy in policies.items()})])


async def test_a_gated_call_waits_and_runs_as_it_was_edited(client: Client, cache: int) -> None:
    warehouse = Warehouse()
    script = Script({"wh_reserve": {"sku": "A-1", "quantity": 1000}}, "done")
    gate = ToolPolicy(approval=Approval(approvers=["ann"], allow_edit=True))
    async with remote(client, [warehouse.reserve]) as queue:
        async with working(client, clerk(queue, script, reserve=gate), cache=cache) as runs:
            handle = await runs.start("clerk", "go")
            (row,) = await pending(handle, 1)
            assert row["args"] == {"sku": "A-1", "quantity": 1000, "shipBy": "sea"}
            assert warehouse.ran == []
            wrong = {"call": row["call"], "by": "ann", "args": {"sku": "A-1", "quantity": "many"}}
            assert "quantity" in await refused(handle, "approve", wrong)
            await update(handle, "approve", {**wrong, "args": {"sku": "A-1", "quantity": 2}})
            await handle.result()
            ((outcome, _),) = (await answers(handle)).values()
            assert outcome == "success"
    assert warehouse.ran == [("ReserveStock", {"sku": "A-1", "quantity": 2, "shipBy": "sea"})]


async def test_a_denied_call_isnt_made(client: Client) -> None:
    warehouse = Warehouse()
    script = Script({"wh_reserve": {"sku": "A-1"}}, "done")
    async with remote(client, [warehouse.reserve]) as queue:
        async with working(client, clerk(queue, script, reserve=ToolPolicy(approval=Approval()))) as runs:
            handle = await runs.start("clerk", "go")
            (row,) = await pending(handle, 1)
            await update(handle, "deny", {"call": row["call"], "by": "ann", "reason": "no"})
            await handle.result()
            assert list((await answers(handle)).values()) == [("denied", "no")]
    assert warehouse.ran == []


async def test_wrong_arguments_are_mended_by_the_model_and_a_barrier_holds(client: Client) -> None:
    warehouse = Warehouse()
    good: list[ModelResponsePart] = [
        ToolCallPart("wh_ping", {}, "c1"),
        ToolCallPart("wh_quote", {"city": "Oslo", "grams": 2, "express": True}, "c2"),
        ToolCallPart("wh_ping", {}, "c3"),
    ]
    script = Script({"wh_reserve": {"sku": "A-1", "color": "red"}}, good, "done")
    async with remote(client, [warehouse.reserve, warehouse.quote, warehouse.ping]) as queue:
        async with working(client, clerk(queue, script)) as runs:
            handle = await runs.start("clerk", "go")
            await handle.result()
            found = list((await answers(handle)).values())
            assert found[0][0] == "retried"
            assert "color" in found[0][1]
            assert (await activities(handle))[2:5] == ["Ping", "QuoteShipping", "Ping"]
    assert [name for name, _ in warehouse.ran] == ["Ping", "QuoteShipping", "Ping"]
    assert warehouse.ran[1][1] == ["Oslo", 2, True]
