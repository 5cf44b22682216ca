"""An agent whose tool is the workflow of `tests.remote`, and the child that it starts."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from temporalio.client import Client, WorkflowHandle
from typing_extensions import TypedDict

from perdure import App, DurableAgent, ToolPolicy
from perdure.toolsets.temporal import TemporalTools
from tests.harness import Handle, until
from tests.scripts import Script


class Order(TypedDict, total=False):
    sku: str
    fail: bool
    wait: bool
    cleanup: bool
    flaky: bool


def packing(queue: str, script: Script, policy: ToolPolicy | None = None, **options: Any) -> App:
    tools = TemporalTools("packing", task_queue=queue)
    tools.workflow("PackOrder", name="pack", description="Pack an order.", input_model=Order, **options)
    agent = Agent(script.model, name="packer", toolsets=[tools])
    return App(agents=[DurableAgent(agent, policies={"pack": policy} if policy else {})])


async def child_of(client: Client, handle: Handle) -> WorkflowHandle[Any, Any]:
    """The child that a run has begun, once it has."""
    found: list[str] = []

    async def begun() -> bool:
        history = await handle.fetch_history()
        found[:] = [
            event.child_workflow_execution_started_event_attributes.workflow_execution.workflow_id
            for event in history.events
            if event.HasField("child_workflow_execution_started_event_attributes")
        ]
        return bool(found)

    await until(begun, every=0.05)
    return client.get_workflow_handle(found[-1])
