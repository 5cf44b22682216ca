"""A tool of an MCP server beside the same function in the worker, and beside a server that is started for each step.

The first two run on one worker and take turns. The third is what a step costs where nobody holds the connection: start
the server over stdio, list its tools, call one, end it.
"""

import statistics
import sys
import time
from dataclasses import dataclass

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RunUsage
from temporalio.client import Client

from benchmarks.measure import step_seconds
from perdure import App, DurableAgent, Limits, ToolPolicy
from perdure.converter import data_converter
from perdure.toolsets.mcp import MCPServer
from perdure.worker import serving

QUEUE = "perdure-mcp"
STEPS = 40
"""Steps of a run, each with one call."""


@dataclass(frozen=True)
class McpSteps:
    """Medians over the runs, in seconds."""

    function: float
    """A step whose tool is a function of the worker."""
    held: float
    """A step whose tool is in a server over stdio that the worker holds."""
    started: float
    """What starting the server, listing, calling and ending it takes: to be added to each step where none is held."""

    @property
    def ratio(self) -> float:
        """A step with the held server, with the function = 1."""
        return self.held / self.function


def act(order: str, cents: int) -> str:
    """Act on an order."""
    return f"{order}: {cents}"


def _scripted(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    taken = sum(isinstance(message, ModelResponse) for message in messages)
    if taken == STEPS:
        return ModelResponse(parts=[TextPart("done")])
    args = {"order": f"A-{taken}", "cents": taken}
    return ModelResponse(parts=[ToolCallPart("act", args, tool_call_id=f"call-{taken}")])


def _transport() -> StdioTransport:
    return StdioTransport(sys.executable, ["-m", "benchmarks.mcp_server"], keep_alive=False)


def _agent(name: str, tools: AbstractToolset[object]) -> DurableAgent:
    agent = Agent(FunctionModel(_scripted, model_name=name), name=name, deps_type=object, toolsets=[tools])
    return DurableAgent(agent, policies={"*": ToolPolicy(effect="safe")}, limits=Limits(turn_requests=2 * STEPS))


async def measure_mcp(address: str, runs: int = 5) -> McpSteps:
    """Run the agents by turns, and start the server as often."""
    client = await Client.connect(address, data_converter=data_converter())
    functions = FunctionToolset[object]([act], id="orders")
    agents = [_agent("function", functions), _agent("held", MCPServer(_transport(), id="orders"))]
    seconds: dict[str, list[float]] = {"function": [], "held": [], "started": []}
    async with serving(client, App(agents=agents, search_attributes=[]), task_queue=QUEUE):
        for turn in range(runs + 1):
            found = {name: await step_seconds(client, name, QUEUE, STEPS + 1) for name in ("function", "held")}
            found["started"] = await _started()
            for name, value in found.items():
                seconds[name] += [value] if turn else []  # the first warms up
    return McpSteps(**{name: statistics.median(found) for name, found in seconds.items()})


async def _started() -> float:
    """The time of one call by a server that lives for it alone."""
    began = time.perf_counter()
    context = RunContext[None](deps=None, model=TestModel(), usage=RunUsage())
    async with MCPToolset(_transport(), id="orders", init_timeout=60) as tools:
        tool = (await tools.get_tools(context))["act"]
        assert await tools.call_tool("act", {"order": "A-1", "cents": 1}, context, tool) == "A-1: 1"
    return time.perf_counter() - began
