"""A worker that knows nothing of perdure: it stands for one in Go, Java or TypeScript.

Its activity has a name and JSON in its own style; the agent knows no more of it than that.
"""

from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

QUEUE = "warehouse"


@activity.defn(name="ReserveStock")
async def reserve_stock(order: dict[str, Any]) -> dict[str, Any]:
    return {"reservationId": f"R-{activity.info().activity_id[:8]}", "item": order["item"], "count": order["count"]}


def warehouse(client: Client, task_queue: str = QUEUE) -> Worker:
    return Worker(
        client,
        task_queue=task_queue,
        activities=[reserve_stock],
        graceful_shutdown_timeout=timedelta(seconds=1),
    )
