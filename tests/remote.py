"""A worker that knows nothing of perdure: activities, workflows and Nexus operations as any team may have them, with
types as Go or Java has them and JSON in camel case."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.harness import with_store


class Warehouse:
    """Keeps what was asked of it, and with which activity id."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, Any]] = []
        self.ids: list[str] = []

    @activity.defn(name="ReserveStock")
    async def reserve(self, order: dict[str, Any]) -> dict[str, Any]:
        """One object in, one out. Fails for what there isn't."""
        self._note("ReserveStock", order)
        if order["sku"] == "none":
            raise ApplicationError("password=hunter2", type="OutOfStock", non_retryable=True)
        if order["sku"] == "told":
            raise ApplicationError("That sku is retired: use B-2.", type="ToolFailed")
        return {"reservationId": f"R-{order['sku']}", "quantity": order["quantity"]}

    @activity.defn(name="QuoteShipping")
    async def quote(self, city: str, grams: int, express: bool) -> dict[str, Any]:
        """Several arguments, by their place."""
        self._note("QuoteShipping", [city, grams, express])
        return {"cents": grams * (2 if express else 1)}

    @activity.defn(name="Ping")
    async def ping(self) -> None:
        """No argument, no result."""
        self._note("Ping", None)

    def _note(self, name: str, asked: Any) -> None:
        self.ran.append((name, asked))
        self.ids.append(activity.info().activity_id)


@workflow.defn(name="PackOrder")
class PackOrder:
    """Ends when it is told to, or fails, as it is asked."""

    def __init__(self) -> None:
        self.packed = False

    @workflow.run
    async def run(self, order: dict[str, Any]) -> dict[str, Any]:
        """What was packed."""
        if order.get("fail"):
            raise ApplicationError("password=hunter2", type="Broken", non_retryable=True)
        if order.get("wait"):
            await workflow.wait_condition(lambda: self.packed)
        return {"packed": order["sku"], "by": workflow.info().workflow_id}

    @workflow.signal
    def pack(self) -> None:
        """It is packed."""
        self.packed = True


@asynccontextmanager
async def remote(
    client: Client,
    activities: Sequence[Callable[..., Any]] = (),
    workflows: Sequence[type[Any]] = (),
    *,
    task_queue: str | None = None,
    **options: Any,
) -> AsyncGenerator[str]:
    """A worker on a queue of its own, with the converter that every SDK has; gives the name of the queue."""
    queue = task_queue or f"remote-{uuid.uuid4().hex[:12]}"
    async with Worker(
        with_store(client, DataConverter.default),
        task_queue=queue,
        activities=activities,
        workflows=workflows,
        workflow_runner=UnsandboxedWorkflowRunner(),
        **options,
    ):
        yield queue
