"""Record the histories of runs whose calls others make: activities, child workflows, Nexus operations; and of one that
is cancelled meanwhile. `make histories` runs it after `tests.record_histories`; see there.
"""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy
from perdure.toolsets.temporal import TemporalTools
from tests.carrier import Carrier, carrier, track
from tests.conftest import server
from tests.deciding import cancelled
from tests.depot import Quote
from tests.harness import working
from tests.packing import Order as Packed
from tests.packing import child_of
from tests.record_histories import write
from tests.remote import PackOrder, Warehouse, remote
from tests.scripts import Script
from tests.shipping import Order, quote_shipping

QUEUE = "warehouse"


def app(endpoint: str) -> App:
    """Every kind of call, with its failures; and one that waits."""
    calls = [
        ("reserve", {"sku": "A-1"}),
        ("reserve", {"sku": "none"}),
        ("quote", {"city": "Oslo", "grams": 5}),
        ("pack", {"sku": "A-1"}),
        ("pack", {"sku": "A-1", "fail": True}),
        ("track", {"parcel": "P-1"}),
        ("track", {"parcel": "lost"}),
    ]
    script = Script([ToolCallPart(name, args) for name, args in calls], "done")
    waiting = Script({"pack": {"sku": "A-1", "wait": True, "cleanup": True}})
    tools = TemporalTools("others", task_queue=QUEUE)
    tools.activity("ReserveStock", name="reserve", input_model=Order)
    tools.activity("QuoteShipping", name="quote", signature=quote_shipping, output_model=Quote)
    tools.workflow("PackOrder", name="pack", input_model=Packed)
    tools.nexus("Track", service="Carrier", endpoint=endpoint, signature=track)
    policies = {"track": ToolPolicy(effect="idempotent", timeout=20)}
    agents = [Agent(one.model, name=name, toolsets=[tools]) for name, one in (("all", script), ("waits", waiting))]
    return App(agents=[DurableAgent(agent, policies=policies) for agent in agents])


async def record(client: Client) -> None:
    """Run both, and write their histories."""
    warehouse = Warehouse()
    activities = [warehouse.reserve, warehouse.quote]
    async with remote(client, activities, [PackOrder], task_queue=QUEUE), carrier(client, Carrier()) as endpoint:
        async with working(client, app(endpoint)) as runs:
            handle = await runs.start("all", "go")
            await handle.result()
            await write("temporal_tools", handle)
            handle = await runs.start("waits", "go")
            await child_of(client, handle)
            await cancelled(handle)
            await write("temporal_cancelled", handle)


async def main() -> None:
    """On a server of its own."""
    async with server() as environment:
        await record(environment.client)


if __name__ == "__main__":
    asyncio.run(main())
