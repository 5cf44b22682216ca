"""What is known of an agent's tools without a run: the same as a step lists, and never more than is sure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, Capability, ToolSearch
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, ExternalToolset, ToolsetTool, WrapperToolset
from pydantic_ai.usage import RunUsage

from perdure import App, DeclarationError, DurableAgent, ToolPolicy
from perdure.checks.known import static_tools
from perdure.cli.contracts import export_of
from perdure.listing import listed, shown
from perdure.toolsets.describe import as_python
from perdure.toolsets.namespace import namespace
from tests.namespaces import tools

PRINT = ToolDefinition(name="print", description="Print.", parameters_json_schema={"type": "object"})
CONTEXT: RunContext[Any] = RunContext(deps=None, model=TestModel(), usage=RunUsage())


class Renaming(WrapperToolset[Any]):
    """A wrapper of an app's own, of which only a run can tell what it shows."""

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await super().get_tools(ctx)
        (tool,) = tools.values()
        return {"find": replace(tool, tool_def=replace(tool.tool_def, name="find"))}


def renamed(ctx: RunContext[Any], tool: ToolDefinition) -> ToolDefinition:
    return replace(tool, name="find")


def preparing() -> FunctionToolset[Any]:
    return FunctionToolset([Tool(lambda: "x", name="look", description="Look.", prepare=renamed)], id="prepared")


def agent_of(*toolsets: AbstractToolset[Any], capabilities: list[AbstractCapability[Any]] | None = None) -> Agent[Any]:
    return Agent(TestModel(), name="small", toolsets=toolsets, capabilities=capabilities or [])


EXACT: dict[str, AbstractToolset[Any]] = {
    "functions": tools("look", "pay"),
    "external": ExternalToolset([PRINT], id="external"),
    "combined": CombinedToolset([tools("look"), ExternalToolset([PRINT], id="external")]),
    "prefixed": tools("look").prefixed("my"),
    "renamed": tools("look", "pay").renamed({"find": "look"}),
    "deferred": tools("look", "pay").defer_loading(["pay"]),
    "metadata": tools("look").with_metadata(team="a"),
    "schemas": tools("look").include_return_schemas(),
    "approved": tools("look").approval_required(),
    "namespace": namespace(tools("look").with_metadata(team="a"), name="my", description="All of mine."),
    "nested": namespace(tools("look").renamed({"find": "look"}), name="a", description="A.").prefixed("b"),
}


@pytest.mark.parametrize("toolset", EXACT.values(), ids=EXACT)
async def test_what_is_listed_is_what_a_step_lists(toolset: AbstractToolset[Any]) -> None:
    found = await toolset.get_tools(CONTEXT)
    assert [replace(tool, toolset_id=None) for tool in listed(toolset) or []] == [
        replace(tool.tool_def, toolset_id=None) for tool in found.values()
    ]
    assert shown(toolset)[1:] == (True, True)


UNSURE: dict[str, tuple[AbstractToolset[Any], list[str], bool]] = {
    "filtered": (tools("look").filtered(lambda _, __: False), ["look"], True),
    "prepared": (tools("look").prepared(lambda _, __: []), ["look"], True),
    "a_prepare_that_renames": (preparing(), ["look"], False),
    "a_wrapper_that_renames": (Renaming(tools("look")), ["look"], False),
    "one_of_two": (CombinedToolset([tools("pay"), Renaming(tools("look"))]), ["pay", "look"], False),
}


@pytest.mark.parametrize(("toolset", "names", "complete"), UNSURE.values(), ids=UNSURE)
def test_of_what_only_a_run_can_tell_it_is_said(
    toolset: AbstractToolset[Any], names: list[str], complete: bool
) -> None:
    found = shown(toolset)
    assert [tool.name for tool, _ in found.rows] == names
    assert (found.exact, found.complete) == (False, complete)
    assert listed(toolset) is None


@pytest.mark.parametrize("toolset", [preparing(), Renaming(tools("look"))], ids=["prepare", "wrapper"])
def test_a_policy_may_be_for_a_name_that_only_a_run_knows(toolset: AbstractToolset[Any]) -> None:
    App(agents=[DurableAgent(agent_of(toolset), policies={"find": ToolPolicy(effect="safe")})])
    sure = agent_of(tools("look").filtered(lambda _, __: True))
    with pytest.raises(DeclarationError, match="policy 'find' matches no tool"):
        App(agents=[DurableAgent(sure, policies={"find": ToolPolicy(effect="safe")})])


def test_tools_that_need_approval_are_known() -> None:
    search = ToolSearch[Any](strategy="keywords")
    with pytest.raises(DeclarationError, match="ToolSearch has nothing to search"):
        App(agents=[agent_of(tools("look").approval_required(), capabilities=[search])])


def test_a_namespaces_tools_are_exported_as_the_model_sees_them() -> None:
    app = App(agents=[agent_of(namespace(tools("pay"), name="billing", description="Payments."))])
    known, complete = static_tools(app.agents["small"])
    tool = known["billing_pay"]
    assert complete
    assert tool.defer_loading
    assert (tool.metadata or {})["namespace"] == "billing"
    assert "Part of billing: Payments." in as_python(known.values())
    exported = export_of(app)["agents"]["small"]["tools"]["billing_pay"]
    assert exported["description"].endswith("Part of billing: Payments.")


def test_nobody_searches_for_the_tools_of_a_capability_that_is_loaded_on_demand() -> None:
    late = Capability[Any](id="late", description="Later.", toolsets=[tools("look")], defer_loading=True)
    (found,) = static_tools(DurableAgent(agent_of(capabilities=[late])))[0].values()
    assert (found.name, found.capability_id, found.defer_loading) == ("look", "late", True)
    App(agents=[agent_of(capabilities=[late])])
    with pytest.raises(DeclarationError, match="ToolSearch has nothing to search"):
        App(agents=[agent_of(capabilities=[late, ToolSearch(strategy="keywords")])])
    policies = {"search_tools": ToolPolicy()}
    with pytest.raises(DeclarationError, match="'search_tools' matches no tool"):
        App(agents=[DurableAgent(agent_of(capabilities=[late]), policies=policies)])


def test_descriptions_are_asked_for_where_every_run_shows_the_tool() -> None:
    silent = FunctionToolset[Any]([Tool(lambda: "x", name="look", description="")], id="silent")
    App(agents=[DurableAgent(agent_of(Renaming(silent)), require_descriptions=True)])
    with pytest.raises(DeclarationError, match="tool 'look' has no description"):
        App(agents=[DurableAgent(agent_of(silent.approval_required()), require_descriptions=True)])
