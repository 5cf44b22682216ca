"""Contracts that are served outside the agent's workers: by whoever answers, or by an activity of another worker."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from perdure.contracts import Target
from perdure.toolsets.contract_toolset import ContractToolset
from tests.deciding import answers, pending, refused, update
from tests.harness import Runs, activities, failure_of, working
from tests.refunds import CALL, REFUND, shop
from tests.scripts import Script


async def test_a_contract_is_served_from_outside(client: Client, cache: int) -> None:
    toolset = ContractToolset([REFUND], id="shop")
    toolset.external(REFUND)
    script = Script({"refund": {"order_id": "too long"}}, CALL, "done")
    async with working(client, shop(script, toolset), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        assert (row["kind"], row["args"]) == ("external", {"order_id": "A-1", "from": "2026-01-01", "note": None})
        text = await refused(handle, "complete", {"call": row["call"], "result": {"cents": -1, "day": "2026-01-01"}})
        assert "$.cents: -1 is less than the minimum of 0" in text
        await update(handle, "complete", {"call": row["call"], "result": {"cents": 5, "day": "2026-01-01"}})
        await handle.result()
        found = await answers(handle)
        assert found["c0.0"][0] == "retried"
        assert found["c1.0"] == ("success", '{"cents":5,"day":"2026-01-01"}')
        assert not [name for name in await activities(handle) if name.startswith("tool:")]


@activity.defn(name="RefundOrder")
async def refund_order(order_id: str, since: str) -> dict[str, Any]:
    """Stands for an activity that another team serves on its own queue."""
    return {"cents": len(order_id) if order_id == "A-1" else -1, "day": since}


@asynccontextmanager
async def elsewhere(client: Client, script: Script, cache: int) -> AsyncGenerator[Runs]:
    """An agent whose contract is served by an activity of a second worker on a queue of its own."""
    toolset = ContractToolset([REFUND], id="shop")
    queue = f"other-{uuid.uuid4().hex[:12]}"
    target = Target(kind="activity", name="RefundOrder", task_queue=queue, positional=["order_id", "from"])
    toolset.target(REFUND, target)
    async with Worker(client, task_queue=queue, activities=[refund_order]):
        async with working(client, shop(script, toolset), cache=cache) as runs:
            yield runs


async def test_a_contract_is_served_by_an_activity_of_another_worker(client: Client, cache: int) -> None:
    async with elsewhere(client, Script(CALL, "done"), cache) as runs:
        handle = await runs.start("shop", "go")
        await handle.result()
        assert (await answers(handle))["c0.0"] == ("success", '{"cents":3,"day":"2026-01-01"}')
        assert "RefundOrder" in await activities(handle)


async def test_s4_24_another_worker_that_breaks_the_contract_ends_the_run(client: Client, cache: int) -> None:
    async with elsewhere(client, Script({"refund": {"order_id": "B-2"}}, "never"), cache) as runs:
        handle = await runs.start("shop", "go")
        failure = await failure_of(handle)
        ran = await activities(handle)
    assert failure.type == "ToolContractViolation"
    assert "$.cents: -1 is less than the minimum of 0" in failure.message
    assert (ran.count("model_request"), ran.count("RefundOrder")) == (1, 1)
