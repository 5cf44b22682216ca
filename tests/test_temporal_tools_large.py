"""Results of others that are more than Temporal takes: their work is done, so it isn't done again."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from nexusrpc.handler import StartOperationContext, service_handler, sync_operation
from pydantic_ai import Agent
from temporalio.api.nexus.v1 import EndpointSpec, EndpointTarget
from temporalio.api.operatorservice.v1 import CreateNexusEndpointRequest
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy
from perdure.toolsets.temporal import TemporalTools
from tests.deciding import only
from tests.depot import depot, which
from tests.harness import working
from tests.remote import Warehouse, remote
from tests.scripts import Script

LARGE = "x" * 3_000_000
TOLD = ("failed", "The call ran, but its result is too large.")


@pytest.mark.parametrize("effect", ["unsafe", "idempotent", "safe"])
async def test_an_activity_whose_result_is_too_large_runs_once(client: Client, cache: int, effect: Any) -> None:
    warehouse = Warehouse()
    warehouse.results["x"] = LARGE
    policies = {"answer": ToolPolicy(effect=effect, backoff=0.1)}
    async with remote(client, [warehouse.answer]) as queue:
        app = depot(queue, Script({"answer": {"which": "x"}}, "done"), policies)
        async with working(client, app, cache=cache) as runs:
            handle = await runs.start("depot", "go")
            await handle.result()
            assert await only(handle) == TOLD
    assert len(warehouse.ran) == 1


@service_handler(name="Archive")
class Archive:
    """Has more than can be sent."""

    def __init__(self) -> None:
        self.asked = 0

    @sync_operation(name="Everything")
    async def everything(self, ctx: StartOperationContext, which: str) -> str:
        """All of it."""
        self.asked += 1
        return LARGE


async def test_a_nexus_operation_whose_result_is_too_large_runs_once(client: Client, cache: int) -> None:
    archive, name = Archive(), f"archive-{uuid.uuid4().hex[:8]}"
    async with remote(client, nexus_service_handlers=[archive]) as queue:
        target = EndpointTarget(worker=EndpointTarget.Worker(namespace=client.namespace, task_queue=queue))
        request = CreateNexusEndpointRequest(spec=EndpointSpec(name=name, target=target))
        await client.operator_service.create_nexus_endpoint(request)
        tools = TemporalTools("archive")
        tools.nexus("Everything", service="Archive", endpoint=name, name="all", signature=which)
        agent = Agent(Script({"all": {"which": "x"}}, "done").model, name="reader", toolsets=[tools])
        app = App(agents=[DurableAgent(agent, policies={"all": ToolPolicy(effect="safe", timeout=20)})])
        async with working(client, app, cache=cache) as runs:
            handle = await runs.start("reader", "go")
            await handle.result()
            assert await only(handle) == TOLD
    assert archive.asked == 1
