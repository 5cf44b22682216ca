"""Where a session is played: its worker, which comes and goes, and what is sent to it."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from pydantic_ai.messages import ModelMessage, UserPromptPart
from temporalio.client import Client

from perdure.client import ClientError, PerdureClient
from perdure.worker import serving
from tests.harness import LONG, Runs, until
from tests.sessions import SESSION
from tests.talks.desk import AGENT, Log, desk

GRACE = timedelta(seconds=0.1)
Row = dict[str, Any]


class Stage:
    """A session on one server, whose workers keep so many workflows in memory."""

    def __init__(self, client: Client, cache: int) -> None:
        self.cache = cache
        self.runs = Runs(client, f"talk-{uuid.uuid4().hex[:12]}")
        self.book: defaultdict[str, Log] = defaultdict(Log)
        self.worker = AsyncExitStack()

    async def open(self, prompt: str | None) -> None:
        """Start a worker and the session."""
        await self.hire()
        self.handle = await self.runs.start(AGENT, prompt, timeout=LONG, **SESSION)
        self.run = PerdureClient(self.runs.client).run(self.handle.id)
        self.log = self.book[self.handle.id]

    async def hire(self) -> None:
        """A new worker, with an app that no other had."""
        app, queue = desk(self.book), self.runs.task_queue
        serves = serving(self.runs.client, app, task_queue=queue, grace=GRACE, max_cached_workflows=self.cache)
        await self.worker.enter_async_context(serves)

    async def look(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition holds, asking a worker only when there is something new and it has nothing to do: with
        a query at each moment a worker that keeps nothing in memory would hardly get to anything else."""
        seen: object = None

        async def holds() -> bool:
            nonlocal seen
            if not self.log.asks.empty():
                return await condition()
            described = (await self.handle.describe()).raw_description
            info = described.workflow_execution_info
            now = (info.execution.run_id, info.history_length, len(self.log.ran))
            if described.HasField("pending_workflow_task") or now == seen:
                return False
            seen = now
            return await condition()

        await until(holds)

    async def idle(self) -> bool:
        return (await self.run.status()).state == "idle"

    async def tell(self, verb: str, body: Row, via: str) -> Any:
        """By update, as perdure's client repeats it; or by signal."""
        if via == "signal":
            return await self.handle.signal(verb, body)
        match verb:
            case "send":
                return await self.run.send(**body)
            case "interrupt":
                return await self.run.interrupt(**body)
            case _:
                return await self.run.decide(verb, body.pop("call"), body)  # pyright: ignore[reportArgumentType]

    async def known(self, id: str) -> bool:
        try:
            return id in (await self.run.turn(message=id)).messages
        except ClientError:  # no such message yet
            return False

    async def push(self) -> None:
        """Events, until the run has continued as new. It doesn't where nothing was done since the last time."""
        before = (await self.handle.describe()).run_id
        for _ in range(25):
            if (await self.handle.describe()).run_id != before:
                return
            await self.handle.signal("nothing", {})


def text(id: str) -> str:
    """What a message says."""
    return f"text of {id}"


def said(messages: Sequence[ModelMessage]) -> list[str]:
    """What people said, in order, whether a prompt has one part or several."""
    found: list[str] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                content = part.content if not isinstance(part.content, str) else [part.content]
                found += [str(one) for one in content]
    return found
