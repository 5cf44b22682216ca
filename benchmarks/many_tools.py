"""500 tools in 20 namespaces beside 5 tools: what a model request carries and how long a step takes.

Both agents run on one worker and take turns, so that a slow minute of the machine hits both: the ratio counts.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.toolsets import AbstractToolset
from pydantic_core import to_json
from temporalio.client import Client

from benchmarks.measure import step_seconds
from perdure import App, DurableAgent, Limits, ToolPolicy
from perdure.converter import data_converter
from perdure.toolsets.namespace import namespace, namespaces
from perdure.worker import serving

QUEUE = "perdure-tools"
NAMESPACES, EACH, FEW = 20, 25, 5
SIZE_TARGET, TIME_TARGET = 1.1, 1.2
STEPS = 40
"""Steps of a run, after the first; that of an agent with hidden tools searches."""
LOCAL = ModelProfile(supported_native_tools=frozenset())
"""A provider that doesn't search: the model is shown only what was found."""
SPACE = "space07"
"""The namespace that is searched."""


@dataclass(frozen=True)
class ManyTools:
    """Medians over the runs."""

    tools: int
    few_seconds: float
    """Time of a step with 5 tools."""
    many_seconds: float
    """Time of a step with 500, of which 5 are revealed."""
    few_bytes: int
    """A model request with 5 tools, as JSON."""
    many_bytes: int
    whole_seconds: float
    """The same with all 500 shown."""
    whole_bytes: int

    @property
    def time_ratio(self) -> float:
        """A step with many tools, with few = 1."""
        return self.many_seconds / self.few_seconds

    @property
    def size_ratio(self) -> float:
        """A request with many tools, with few = 1."""
        return self.many_bytes / self.few_bytes


@dataclass
class Scripted:
    """A model that searches once, where it can, and then calls tools; it notes the size of what it is sent."""

    names: Sequence[str]
    sizes: list[int] = field(default_factory=list[int])

    async def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        tools = [(tool.name, tool.description, tool.parameters_json_schema) for tool in info.function_tools]
        self.sizes.append(len(ModelMessagesTypeAdapter.dump_json(messages)) + len(to_json(tools)))
        taken = sum(isinstance(message, ModelResponse) for message in messages)
        if taken == 0 and any(tool.name == "search_tools" for tool in info.function_tools):
            return _called("search_tools", {"queries": [SPACE]}, taken)
        if taken > STEPS:
            return ModelResponse(parts=[TextPart("done")])
        return _called(self.names[taken % len(self.names)], {"order": f"A-{taken}", "cents": taken}, taken)


def _called(name: str, args: dict[str, object], taken: int) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart(name, args, tool_call_id=f"call-{taken}")])


def tools_of(number: int, count: int) -> FunctionToolset[object]:
    """A toolset of functions with a schema of ordinary size."""
    tools = FunctionToolset[object](id=f"tools{number:02}")
    for index in range(count):

        async def act(
            order: str, cents: int, reason: str = "", notify: bool = False, tags: list[str] | None = None
        ) -> str:
            """Act on an order."""
            return f"{order}: {cents} {reason} {notify} {tags}"

        tools.add_function(
            act, name=f"act{index:02}", description=f"Acts on an order in way {index}, and says what came of it."
        )
    return tools


def _agent(name: str, toolsets: Sequence[AbstractToolset[object]], model: Scripted, *, search: bool) -> DurableAgent:
    agent = Agent(
        FunctionModel(model, model_name=name, profile=LOCAL),
        name=name,
        deps_type=object,
        toolsets=toolsets,
        capabilities=[ToolSearch(max_results=FEW)] if search else [],
    )
    return DurableAgent(agent, policies={"*": ToolPolicy(effect="safe")}, limits=Limits(turn_requests=10 * STEPS))


@dataclass(frozen=True)
class Pair:
    """The agents that are compared."""

    few: Scripted
    many: Scripted
    whole: Scripted
    app: App


def pair() -> Pair:
    """Fresh agents: 5 tools, 500 hidden ones, 500 shown ones."""
    few, many = Scripted([f"act{n:02}" for n in range(FEW)]), Scripted([f"{SPACE}_act{n:02}" for n in range(FEW)])
    whole = Scripted(many.names)

    def spaces(hidden: bool) -> list[AbstractToolset[object]]:
        parts = [
            namespace(tools_of(n, EACH), name=f"space{n:02}", description=f"Orders of region {n}.", hidden=hidden)
            for n in range(NAMESPACES)
        ]
        return [namespaces(*parts)]

    agents = [
        _agent("few", [tools_of(0, FEW)], few, search=False),
        _agent("many", spaces(hidden=True), many, search=True),
        _agent("whole", spaces(hidden=False), whole, search=False),
    ]
    return Pair(few, many, whole, App(agents=agents, search_attributes=[]))


async def measure_many_tools(address: str, runs: int = 5) -> ManyTools:
    """Run the agents by turns."""
    client = await Client.connect(address, data_converter=data_converter())
    made = pair()
    seconds: dict[str, list[float]] = {"few": [], "many": [], "whole": []}
    async with serving(client, made.app, task_queue=QUEUE):
        for turn in range(runs + 1):
            for name, found in seconds.items():
                taken = await step_seconds(client, name, QUEUE, STEPS + 1)
                found += [taken] if turn else []  # the first warms up
    few, many, whole = (statistics.median(found) for found in seconds.values())
    return ManyTools(
        tools=NAMESPACES * EACH,
        few_seconds=few,
        many_seconds=many,
        whole_seconds=whole,
        few_bytes=made.few.sizes[STEPS // 2],
        many_bytes=made.many.sizes[STEPS // 2],
        whole_bytes=made.whole.sizes[STEPS // 2],
    )
