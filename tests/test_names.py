"""Names that a Temporal server would refuse, by failing the workflow task for ever, are refused in the declaration."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic_ai import Agent
from temporalio import activity

from perdure import App, DeclarationError, TaskQueue, ToolPolicy
from perdure.toolsets.agent import agent_tool
from perdure.toolsets.temporal import TemporalTools
from tests.scripts import Script


@activity.defn
async def greet(name: str) -> str:
    """Greet somebody."""
    return name


@pytest.mark.parametrize("name", ["", "/_sys/x", "__temporal_x", "é" * 501, "\ud800", 5], ids=ascii)
def test_a_queue_that_no_server_takes_is_refused(name: Any) -> None:
    agent = Agent(Script("x").model, name="sales")
    for what, declare in (
        ("task_queues: name=", lambda: App(agents=[agent], task_queues={name: TaskQueue()})),
        ("task_queue=", lambda: ToolPolicy(task_queue=name)),
        ("TemporalTools('go'): task_queue=", lambda: TemporalTools("go", task_queue=name)),
        ("TemporalTools('go'): task_queue=", lambda: TemporalTools("go").activity(greet, task_queue=name)),
        ("agent_tool('helper'): task_queue=", lambda: agent_tool("helper", task_queue=name)),
    ):
        with pytest.raises(DeclarationError, match=re.escape(what) + ".* must (have 1 to 1000 bytes and|be text)"):
            declare()


def test_a_name_of_the_most_bytes_is_taken() -> None:
    name = "é" * 500
    App(agents=[Agent(Script("x").model, name="sales")], task_queues={name: TaskQueue()})
    assert ToolPolicy(task_queue=name).options().task_queue == name
    assert TemporalTools("go", task_queue=name).task_queue == name
