"""An app with two queues for tools, for `perdure worker` in a process of its own."""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from perdure import App, TaskQueue

app = App(
    agents=[Agent(TestModel(), name="plain")],
    task_queues={"crm": TaskQueue(max_concurrent_activities=2), "gpu": TaskQueue()},
)
