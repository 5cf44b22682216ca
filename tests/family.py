"""Agents that call each other, for tests: a boss with a tool for each of its staff, and helpers to look at both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import Agent, FunctionToolset, Tool
from temporalio.client import Client, WorkflowHandle

from perdure import App, Approval, DurableAgent, ToolPolicy
from perdure.toolsets.agent import agent_tool
from tests.harness import Handle
from tests.scripts import Script


def staff(script: Script, ran: list[Any], *, name: str = "clerk", **options: Any) -> DurableAgent:
    """An agent with a plain tool and a gated one."""
    tools = FunctionToolset[None](id=f"{name}_tools")

    @tools.tool_plain
    def look(n: int) -> str:
        """Harmless."""
        ran.append(("look", n))
        return f"saw {n}"

    @tools.tool_plain
    def refund(n: int) -> str:
        """Gated."""
        ran.append(("refund", n))
        return f"refunded {n}"

    policies = {"refund": ToolPolicy(approval=Approval(approvers=["ann"]))}
    return DurableAgent(Agent(script.model, name=name, toolsets=[tools]), policies=policies, **options)


def boss(script: Script, *tools: Tool[Any], name: str = "boss", **options: Any) -> DurableAgent:
    """An agent whose tools are agents."""
    made: Sequence[Tool[Any]] = tools or [agent_tool("clerk")]
    return DurableAgent(Agent(script.model, name=name, tools=made), **options)


def firm(boss_script: Script, clerk_script: Script, ran: list[Any], **options: Any) -> App:
    """A boss with one clerk, whom it asks with `ask_clerk`. `options` are the boss's."""
    return App(agents=[boss(boss_script, **options), staff(clerk_script, ran)])


async def children(client: Client, handle: Handle) -> list[WorkflowHandle[Any, Any]]:
    """The runs that a run has started, in the order of its history."""
    history = await handle.fetch_history()
    started = [
        event.start_child_workflow_execution_initiated_event_attributes.workflow_id
        for event in history.events
        if event.HasField("start_child_workflow_execution_initiated_event_attributes")
    ]
    return [client.get_workflow_handle(name) for name in started]
