"""Tools that are activities of others: scheduled by the run itself, under their own type and queue."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy
from perdure.toolsets.temporal import TemporalTools
from tests.deciding import answers
from tests.harness import activities, working
from tests.remote import Warehouse, remote
from tests.scripts import Script
from tests.shipping import Order, ping, quote_shipping


def shipping(queue: str, script: Script, **policies: ToolPolicy) -> App:
    tools = TemporalTools("shipping", task_queue=queue)
    tools.activity("ReserveStock", name="reserve", description="Reserve.", input_model=Order)
    tools.activity("QuoteShipping", signature=quote_shipping)
    tools.activity("Ping", signature=ping)
    return App(agents=[DurableAgent(Agent(script.model, name="clerk", toolsets=[tools]), policies=policies)])


def calls(*named: tuple[str, dict[str, Any]]) -> list[Any]:
    return [ToolCallPart(name, args, tool_call_id=f"c{index}") for index, (name, args) in enumerate(named, start=1)]


async def test_activities_of_others_are_called_by_their_type(client: Client, cache: int) -> None:
    warehouse = Warehouse()
    script = Script(
        calls(
            ("reserve", {"sku": "A-1", "shipBy": "air"}),
            ("quote_shipping", {"city": "Oslo", "grams": 5}),
            ("ping", {}),
        ),
        "done",
    )
    async with remote(client, [warehouse.reserve, warehouse.quote, warehouse.ping]) as queue:
        async with working(client, shipping(queue, script), cache=cache) as runs:
            handle = await runs.start("clerk", "go")
            assert (await handle.result())["output"] == "done"
            assert await activities(handle) == [
                "model_request",
                "ReserveStock",
                "QuoteShipping",
                "Ping",
                "model_request",
            ]
            assert await answers(handle) == {
                "c1": ("success", '{"quantity":1,"reservationId":"R-A-1"}'),
                "c2": ("success", '{"cents":5}'),
                "c3": ("success", ""),
            }
    assert sorted(warehouse.ran, key=str) == [
        ("Ping", None),
        ("QuoteShipping", ["Oslo", 5, False]),
        ("ReserveStock", {"sku": "A-1", "quantity": 1, "shipBy": "air"}),
    ]
    assert len(set(warehouse.ids)) == 3
