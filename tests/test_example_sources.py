"""The example with tools from seven sources: what must hold of every run holds, cached or not, restarted or not."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from examples.sources.app import build
from examples.sources.warehouse import warehouse
from tests.command import ROOT, free_port, listens
from tests.deciding import answers, pending, update
from tests.family import children
from tests.harness import Handle, Runs, activities, check_run, until, working

SOURCES = {
    "shelf": "1",
    "price": '{"cents":9900}',
    "supplier": "Acme",
    "rate": "11.0",
    "discount": "10",
    "buyer": "place_order: ordered 2 keyboard from Acme",
}


@pytest.fixture
async def rates() -> AsyncGenerator[str]:
    """The address of the MCP server over HTTP, ended by its own process id."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "examples.sources.rates", str(port), cwd=ROOT)

    async def up() -> bool:
        return listens(port)

    try:
        await until(up)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        await process.wait()


class Desk:
    """The workers of the example, which can be stopped and started again."""

    def __init__(self, client: Client, folder: Path, rates: str, cache: int) -> None:
        self.client, self.book, self.rates, self.cache = client, folder / "orders.jsonl", rates, cache
        self.queue = f"q-{uuid.uuid4().hex[:12]}"
        self.stack = AsyncExitStack()

    async def start(self) -> Runs:
        """Start both workers."""
        app = build(self.book, self.rates, f"{self.queue}-warehouse")
        await self.stack.enter_async_context(warehouse(self.client, f"{self.queue}-warehouse"))
        return await self.stack.enter_async_context(
            working(self.client, app, cache=self.cache, task_queue=self.queue, check=False)
        )

    async def stop(self) -> None:
        """Stop them."""
        await self.stack.aclose()

    @property
    def orders(self) -> list[dict[str, Any]]:
        """What was truly ordered."""
        return [json.loads(line) for line in self.book.read_text().splitlines()] if self.book.exists() else []


@pytest.fixture
async def desk(
    client: Client, cache: int, tmp_path: Path, rates: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Desk]:
    """The example, stopped at the end however the test ends."""
    monkeypatch.chdir(ROOT)  # the MCP server over stdio is a module of the examples
    desk = Desk(client, tmp_path, rates, cache)
    try:
        yield desk
    finally:
        await desk.stop()


async def asked(desk: Desk, runs: Runs) -> tuple[Handle, Handle, dict[str, Any]]:
    """A run whose buyer waits, the run of the buyer, and what `pending` shows."""
    handle = await runs.start("desk", "We need three keyboards.")
    (row,) = await pending(handle, 1)
    (buyer,) = await children(desk.client, handle)
    assert (row["workflow_id"], row["tool"], desk.orders) == (buyer.id, "place_order", [])
    return handle, buyer, row


@pytest.mark.parametrize("restarted", [False, True], ids=["", "restarted"])
async def test_tools_from_seven_sources(desk: Desk, restarted: bool) -> None:
    handle, buyer, row = await asked(desk, await desk.start())
    if restarted:
        await desk.stop()
        await desk.start()
    await update(buyer, "approve", {"call": row["call"], "by": "ann"})
    result = await handle.result()
    said = {name: text for name, (_, text) in (await answers(handle)).items()}
    reserved = json.loads(said.pop("reserve"))
    assert (reserved["item"], reserved["count"], said) == ("keyboard", 1, SOURCES)
    assert all(text in result["output"] for text in SOURCES.values())
    (order,) = desk.orders
    assert {name: order[name] for name in row["args"]} == row["args"]
    assert (result["usage"]["requests"], result["usage"]["tool_calls"]) == (5, 8)
    assert sorted(await activities(handle)) == [
        "ReserveStock",
        *["model_request"] * 3,
        *(f"tool:{name}" for name in ("discount", "on_the_shelf", "price_of", "rate", "supplier_of")),
    ]
    assert await activities(buyer) == ["model_request", "tool:place_order", "model_request"]
    for run in (handle, buyer):
        await check_run(run)


async def test_an_order_that_is_denied_is_never_placed(desk: Desk) -> None:
    handle, buyer, row = await asked(desk, await desk.start())
    await update(buyer, "deny", {"call": row["call"], "by": "ann", "reason": "too many"})
    assert "too many" in (await handle.result())["output"]
    assert desk.orders == []
    for run in (handle, buyer):
        await check_run(run)
