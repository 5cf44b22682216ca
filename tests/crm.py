"""An agent whose tool has a queue of its own, and may be held."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ToolCallPart

from perdure import App, DurableAgent, TaskQueue, ToolPolicy
from tests.scripts import Script


@dataclass
class Crm:
    """An agent whose tool notes how many of it run at once, and may be held."""

    calls: int = 1
    policy: ToolPolicy | None = None
    limits: TaskQueue = field(default_factory=TaskQueue)
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    queue: str = field(default_factory=lambda: f"crm-{uuid.uuid4().hex[:8]}")
    go: asyncio.Event = field(default_factory=asyncio.Event)
    running: int = 0
    most: int = 0
    ran: list[int] = field(default_factory=list[int])

    async def look_up(self, n: int) -> str:
        """Look a customer up."""
        self.running += 1
        self.most = max(self.most, self.running)
        self.ran.append(n)
        await self.go.wait()
        self.running -= 1
        return f"customer {n}"

    @property
    def app(self) -> App:
        calls: list[Any] = [ToolCallPart("look_up", {"n": n}) for n in range(self.calls)]
        policy = self.policy or ToolPolicy(task_queue=self.queue)
        agent = Agent(Script(calls, "done").model, name="sales", tools=[self.look_up])
        durable = DurableAgent(agent, policies={"look_*": policy}, **self.options)
        return App(agents=[durable], task_queues={self.queue: self.limits})
