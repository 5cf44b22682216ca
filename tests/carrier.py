"""Operations of a Nexus service, and a worker that serves them behind an endpoint."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from nexusrpc import HandlerError, HandlerErrorType
from nexusrpc.handler import StartOperationContext, service_handler, sync_operation
from temporalio import nexus
from temporalio.api.nexus.v1 import EndpointSpec, EndpointTarget
from temporalio.api.operatorservice.v1 import CreateNexusEndpointRequest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from perdure import ToolPolicy
from tests.remote import PackOrder, remote

SAFE = ToolPolicy(effect="idempotent", timeout=20)


async def track(parcel: str) -> None:
    """Where a parcel is."""


@service_handler(name="Carrier")
class Carrier:
    """Answers at once, or begins a workflow and answers with its result."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    @sync_operation(name="Track")
    async def track(self, ctx: StartOperationContext, parcel: str) -> dict[str, Any]:
        """Where a parcel is, or why that isn't known."""
        self.keys.append(ctx.headers["idempotency-key"])
        if parcel == "lost":
            raise ApplicationError("password=hunter2", type="Lost", non_retryable=True)
        if parcel == "bad":
            raise HandlerError("password=hunter2", type=HandlerErrorType.BAD_REQUEST)
        if parcel == "slow" or (parcel == "later" and len(self.keys) == 1):
            raise ConnectionError("password=hunter2")
        return {"parcel": parcel, "at": "Oslo"}

    @nexus.workflow_run_operation(name="Pack")
    async def pack(
        self, ctx: nexus.WorkflowRunOperationContext, order: dict[str, Any]
    ) -> nexus.WorkflowHandle[dict[str, Any]]:
        """Packed by a workflow."""
        return await ctx.start_workflow(PackOrder.run, order, id=f"packed-{ctx.request_id}")


@asynccontextmanager
async def carrier(client: Client, handler: Carrier) -> AsyncGenerator[str]:
    """An endpoint with a worker behind it; gives its name."""
    name = f"carrier-{uuid.uuid4().hex[:8]}"
    async with remote(client, workflows=[PackOrder], nexus_service_handlers=[handler]) as queue:
        target = EndpointTarget(worker=EndpointTarget.Worker(namespace=client.namespace, task_queue=queue))
        request = CreateNexusEndpointRequest(spec=EndpointSpec(name=name, target=target))
        await client.operator_service.create_nexus_endpoint(request)
        yield name
