"""A worker in one of three ways: an ordinary one, one that keeps nothing, one that is replaced at each pause."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

import pytest
from temporalio.client import Client

from perdure import App
from perdure.worker import serving
from tests.harness import Handle, Runs, check_run
from tests.sessions import SESSION

Way = Literal["ordinary", "cache 0", "restarts"]
WAYS: list[Way] = ["ordinary", "cache 0", "restarts"]


@dataclass
class Bench:
    """A worker that may be replaced by another one with an app of its own."""

    client: Client
    make: Callable[[], App]
    way: Way
    runs: Runs
    worker: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def hire(self) -> None:
        """A new worker."""
        cached = 0 if self.way == "cache 0" else 1000
        grace = timedelta(seconds=0.1)
        queue = self.runs.task_queue
        await self.worker.enter_async_context(
            serving(self.client, self.make(), task_queue=queue, grace=grace, max_cached_workflows=cached)
        )

    async def pause(self) -> None:
        """The run stands still: a worker that is replaced at each pause is replaced now."""
        if self.way == "restarts":
            await self.worker.aclose()
            await self.hire()

    async def start(self, agent: str, prompt: Any = None) -> Handle:
        """Start a session."""
        return await self.runs.start(agent, prompt, **SESSION)


@asynccontextmanager
async def bench(client: Client, make: Callable[[], App], way: Way) -> AsyncGenerator[Bench]:
    """A worker while the block runs; then what must hold of its runs is checked."""
    made = Bench(client, make, way, Runs(client, f"case-{uuid.uuid4().hex[:12]}"))
    await made.hire()
    try:
        yield made
        for handle in made.runs.handles:
            await check_run(handle)
    finally:
        await made.worker.aclose()


@pytest.fixture(params=WAYS)
def any_way(request: pytest.FixtureRequest) -> Way:
    """How the worker of a bench is."""
    return request.param
