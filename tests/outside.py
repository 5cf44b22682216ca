"""An agent with one tool that is run elsewhere."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from perdure import App, DurableAgent, ToolPolicy
from tests.scripts import Script

PRINT = ToolDefinition(
    name="print",
    description="Print something, somewhere else.",
    parameters_json_schema={
        "type": "object",
        "properties": {"pages": {"type": "integer", "minimum": 1}},
        "required": ["pages"],
        "additionalProperties": False,
    },
    return_schema={"type": "object", "properties": {"job": {"type": "string"}}, "required": ["job"]},
)


def office(script: Script, **policy: Any) -> App:
    """An agent with one external tool."""
    agent: Any = Agent(script.model, name="office", toolsets=[ExternalToolset([PRINT], id="printer")], retries=1)
    return App(agents=[DurableAgent(agent, policies={"print": ToolPolicy(**policy)} if policy else {})])


def outside(script: Script, **options: Any) -> App:
    """An agent with a tool without arguments whose result comes from outside."""
    definition = ToolDefinition(name="outside", parameters_json_schema={"type": "object", "properties": {}})
    agent = Agent(script.model, name="out", toolsets=[ExternalToolset([definition], id="out")])
    return App(agents=[DurableAgent(agent, **options)])
