"""A worker that knows nothing of perdure: activities, workflows and Nexus operations as any team may have them, with
types as Go or Java has them and JSON in camel case."""

from __future__ import annotations

import asyncio
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
        self.go = asyncio.Event()
        """Lets everything go on that is held."""
        self.results: dict[str, Any] = {}
        """What `Answer` answers with."""

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

    @activity.defn(name="HoldParcel")
    async def hold(self, how: str) -> str:
        """Held until it may go on. `beats`: sends heartbeats, and so hears of a cancel; `lost`: its worker says that it
        is shutting down; `flaky`: fails twice, at once."""
        self._note("HoldParcel", how)
        if how == "lost":
            raise ApplicationError("shutdown", type="WorkerShutdown")
        if how == "flaky" and len(self.ran) < 3:
            raise ConnectionError("password=hunter2")
        while how == "beats" and not self.go.is_set():
            activity.heartbeat()
            await asyncio.sleep(0.05)
        if how != "flaky":
            await self.go.wait()
        return "held"

    @activity.defn(name="Answer")
    async def answer(self, which: str) -> Any:
        """Answers with whatever is to be tried."""
        self._note("Answer", which)
        return self.results[which]

    def _note(self, name: str, asked: Any) -> None:
        self.ran.append((name, asked))
        self.ids.append(activity.info().activity_id)


@workflow.defn(name="PackOrder")
class PackOrder:
    """Ends when it is told to, or fails, as it is asked."""

    def __init__(self) -> None:
        self.packed = False
        self.cleaned = False

    @workflow.run
    async def run(self, order: dict[str, Any]) -> dict[str, Any]:
        """What was packed."""
        if order.get("fail"):
            raise ApplicationError("password=hunter2", type="Broken", non_retryable=True)
        if order.get("flaky") and workflow.info().attempt == 1:
            raise ApplicationError("password=hunter2", type="Jammed")
        if order.get("wait"):
            await self._wait(bool(order.get("cleanup")))
        return {"packed": order["sku"], "by": workflow.info().workflow_id}

    async def _wait(self, cleanup: bool) -> None:
        try:
            await workflow.wait_condition(lambda: self.packed)
        except asyncio.CancelledError:
            if cleanup:
                await workflow.sleep(0.2)
                self.cleaned = True
            raise

    @workflow.query(name="cleaned")
    def has_cleaned(self) -> bool:
        """Whether it put everything back before it ended."""
        return self.cleaned

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
