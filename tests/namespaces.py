"""What tests of search share: a model that must search, and tools in namespaces that note what runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    NativeToolSearchCallPart,
    NativeToolSearchReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.native_tools._tool_search import ToolSearchTool
from pydantic_ai.profiles import ModelProfile

from perdure import App, DurableAgent
from perdure.toolsets.namespace import Namespace, namespace
from tests.scripts import Script, Turn

LOCAL = ModelProfile(supported_native_tools=frozenset())
"""The profile of a model whose provider runs no tools: Pydantic AI offers it `search_tools`."""
SPACES = {
    "billing": ("Invoices, refunds and payments.", ["invoice", "refund"]),
    "shipping": ("Parcels and where they are.", ["track", "relabel"]),
    "staff": ("Holidays of employees, and their pay.", ["vacation", "payslip"]),
}


class Searching(Script):
    """A script for a model that searches with `search_tools`, or as its profile says."""

    def __init__(self, *turns: Turn, profile: ModelProfile | None = None) -> None:
        super().__init__(*turns)
        self.profile = LOCAL if profile is None else profile

    @property
    def model(self) -> FunctionModel:
        return FunctionModel(self._function, profile=self.profile)

    def shown(self) -> list[list[str]]:
        """The tools that each request carried, but for the search."""
        return [visible(info) for info in self.infos]


def visible(info: AgentInfo) -> list[str]:
    """The tools that a model is shown, but for the search."""
    return sorted(tool.name for tool in info.function_tools if tool.name != "search_tools")


def numbered(id: str, names: Sequence[str], ran: list[str]) -> FunctionToolset[Any]:
    """A toolset of functions with these names, which take a number."""
    tools = FunctionToolset[Any](id=id)
    for name in names:

        def use(n: int = 0, name: str = name) -> str:
            ran.append(name)
            return f"{name} {n}"

        tools.add_function(use, name=name, description=f"To {name} by number.")
    return tools


def spaces(ran: list[str]) -> list[Namespace]:
    """The namespaces, each with its tools."""
    return [
        namespace(numbered(name, tools, ran), name=name, description=description)
        for name, (description, tools) in SPACES.items()
    ]


def office(
    script: Searching, ran: list[str], *capabilities: AbstractCapability[Any], tools: Sequence[Any] = (), **durable: Any
) -> App:
    """An agent with the namespaces and one plain tool."""
    plain = numbered("desk", ["look"], ran)
    agent = Agent(
        script.model, name="office", toolsets=[plain, *spaces(ran), *tools], capabilities=list(capabilities), retries=3
    )
    return App(agents=[DurableAgent(agent, **durable)])


def search(*queries: str) -> dict[str, Any]:
    """A call of the search."""
    return {"search_tools": {"queries": list(queries)}}


NATIVE = ModelProfile(supported_native_tools=frozenset({ToolSearchTool}), tool_deferral_mode="with_tool_search")
"""The profile of a model whose provider searches itself, in tools that it was sent with `defer_loading`."""


def searched(*names: str, id: str = "s1") -> list[Any]:
    """A provider's own search, as it stands in its response."""
    return [
        NativeToolSearchCallPart(args={"queries": ["refund"]}, tool_call_id=id, provider_name="function"),
        NativeToolSearchReturnPart(
            content={"discovered_tools": [{"name": name} for name in names]},
            tool_call_id=id,
            timestamp=datetime(2026, 11, 30, tzinfo=UTC),
            provider_name="function",
        ),
    ]


def tools(*names: str, id: str = "tools") -> FunctionToolset[Any]:
    """A toolset of which nothing is run."""
    return numbered(id, names, [])
