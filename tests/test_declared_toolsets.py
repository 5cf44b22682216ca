"""Toolsets and tools that are declared wrongly, or put in the wrong place, are refused in one sentence."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.models.test import TestModel
from pydantic_ai.native_tools import CodeExecutionTool

from perdure import App, DeclarationError, DurableAgent, ToolPolicy
from perdure.contracts import Target
from perdure.toolsets import agent, apply_patch, contract_toolset, mcp, temporal, workspace
from perdure.toolsets import contract as contracts
from perdure.toolsets import namespace as spaces

agent_tool: Any = agent.agent_tool
handoff_tool: Any = agent.handoff_tool
patching: Any = apply_patch.patching
Server: Any = mcp.MCPServer
Temporal: Any = temporal.TemporalTools
Contracts: Any = contract_toolset.ContractToolset
Contract: Any = contracts.ToolContract
files: Any = workspace.workspace
namespace: Any = spaces.namespace
namespaces: Any = spaces.namespaces
native: Any = NativeTool
"""They are called with what no type checker lets pass."""


def look(n: int) -> str:
    """Look something up."""
    return str(n)


def opened() -> io.TextIOWrapper:
    """A file."""
    return open("/dev/null")


def folder_of(ctx: Any) -> str:
    """The folder of a run."""
    return f"/tmp/{ctx.run_id}"


class Order(BaseModel):
    """The arguments of the contracts."""

    order_id: str


class Trip(BaseModel):
    """Params of the agent that is asked."""

    depth: int
    lang: str = "en"


REFUND = contracts.ToolContract("refund", "Refund an order.", Order, str)
CANCEL = contracts.ToolContract("cancel", "Cancel an order.", Order, str)
OTHER = Agent(TestModel(), name="other")
LOOKING = FunctionToolset([look], id="looking")
URL = "http://127.0.0.1:9/mcp"


def app(*, policies: Any = None, **options: Any) -> App:
    """An App with an agent that is declared so."""
    make: Any = Agent
    asked = DurableAgent(OTHER, params_type=Trip)
    return App(agents=[asked, DurableAgent(make(TestModel(), name="small", **options), policies=policies or {})])


def shop(*contracts: Any) -> Any:
    """A toolset of the contract REFUND, or of those."""
    return Contracts(contracts or [REFUND], id="shop")


def served(**target: Any) -> Any:
    """The contract, served by this target, which nobody could make."""
    return shop().target(REFUND, Target(**target))


WRONG: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: served(kind="activity", task_queue="q"),
        "contract 'refund': its target: name='' must have 1 to 1000 bytes",
    ),
    (lambda: served(kind="workflow", name="R", task_queue=""), "its target: task_queue='' must have 1 to 1000 bytes"),
    (lambda: served(kind="nexus", name="R"), "its target: service='' must have 1 to 1000 bytes"),
    (lambda: served(kind="agent", name="other"), "kind='agent' is what agent_tool(…) and handoff_tool(…) make"),
    (lambda: shop().target(REFUND, "B"), "contract 'refund': target='B' must be a Target(…)"),
    (lambda: shop().handle(CANCEL), "contract 'cancel' is none of those of toolset 'shop'"),
    (lambda: shop().external(CANCEL), "Its contracts: ['refund']"),
    (lambda: shop().external("refund"), "toolset 'shop': contract='refund' must be a ToolContract(…)"),
    (lambda: shop().handle(REFUND, timeout="20"), "contract 'refund': timeout='20' must be a number"),
    (lambda: Contracts(REFUND, id="shop"), "must be a list: put it into a list"),
    (lambda: Contract("a", "A.", Order, version=2), "version=2 must be text"),
    (lambda: Contract("a", 3, Order), "description=3 must be text"),
    (lambda: agent_tool("other", params="x"), "agent_tool('other'): params='x' must be a dictionary"),
    (lambda: agent_tool("other", limits={"requests": 1}), "must be a Limits(…): write Limits(requests=1)"),
    (lambda: agent_tool("other", inherit="customer"), "inherit='customer' must be a list of names: put it into a list"),
    (lambda: agent_tool(OTHER), "agent_tool(an Agent): agent=an Agent must be text: give its name, 'other'"),
    (lambda: handoff_tool(OTHER), "must be text: give its name, 'other'"),
    (
        lambda: app(tools=[agent_tool("other", params={"depth": "deep"})]),
        "params['depth']='deep' isn't what agent 'other'",
    ),
    (lambda: app(tools=[agent_tool("other", inherit=["depth"])]), "inherit=['depth'] names params that agent 'small'"),
    (lambda: app(tools=[agent_tool("othr")]), "Known agents: ['other', 'small']. Where other workers serve it"),
    (lambda: app(toolsets=[agent_tool("other")]), "the tool 'ask_other' is among its toolsets: Agent(…, tools=[…])"),
    (lambda: app(toolsets=[3]), "toolsets=[…] has 3, which is neither a toolset nor makes one"),
    (lambda: app(tools=[Temporal("x")]), "TemporalTools is a toolset, and no tool: Agent(…, toolsets=[…])"),
    (lambda: app(tools=[shop()]), "ContractToolset is a toolset, and no tool: Agent(…, toolsets=[…])"),
    (lambda: app(tools=[opened]), "its result is TextIOWrapper, which can be read once only; return its text"),
    (
        lambda: app(capabilities=[CodeExecutionTool()]),
        "has CodeExecutionTool(…), a tool: write NativeTool(CodeExecution",
    ),
    (
        lambda: app(capabilities=[native(CodeExecutionTool)]),
        "has the class in place of a tool: NativeTool(CodeExecutionT",
    ),
    (lambda: app(toolsets=[LOOKING, FunctionToolset(id="looking")]), "two toolsets have the id 'looking': Function"),
    (
        lambda: app(toolsets=[Server(URL, id="a"), Server(URL, id="a")]),
        "two toolsets have the id 'a': MCPServer 'a' and",
    ),
    (lambda: app(toolsets=[Server(URL, id="a").prefixed("a b")]), "the prefix 'a b' is not 1 to 64 of A-Z, a-z, 0-9"),
    (lambda: Temporal(3), "TemporalTools(…): id=3 must be text"),
    (lambda: Temporal("s").activity("X", signature="q"), "activity 'X': signature='q' must be a function"),
    (
        lambda: Temporal("s").activity("X", signature=look, output_model="Out"),
        "output_model='Out' is neither a JSON Sche",
    ),
    (lambda: Temporal("s").activity("X", contract=3), "contract=3 must be something with name, description, input_mod"),
    (lambda: Temporal("s").nexus("X", service=3, endpoint="e"), "TemporalTools('s').nexus: service=3 must be text"),
    (lambda: namespace([look], name="a", description="A."), "namespace(name='a'): toolset=a list must be a Toolset"),
    (lambda: namespace(LOOKING, name=3, description="A."), "namespace(name=3): name=3 must be text"),
    (lambda: namespaces([namespace(LOOKING, name="a", description="A.")]), "put a * before the list"),
    (lambda: namespaces(LOOKING), "namespaces(…): a FunctionToolset is no namespace: make it one, namespace(toolset, "),
    (lambda: files(lambda: "/tmp"), "root=the function <lambda> can't be called with 1 argument: too many"),
    (lambda: files("/etc/passwd"), "root='/etc/passwd' is no folder"),
    (lambda: patching("/etc/passwd"), "root='/etc/passwd' is no folder"),
    (lambda: files("/tmp", git="yes"), "workspace(id='workspace'): git='yes' must be True or False"),
    (lambda: files("/tmp", env={"A": 3}), "env['A']=3 must be text"),
    (lambda: files("/tmp", env=["A"]), "env=['A'] must be a dictionary, names to text"),
    (lambda: Server(URL, id="a", optional="yes"), "MCPServer(id='a'): optional='yes' must be True or False"),
    (lambda: Server(URL, id="a", ttl=-1), "MCPServer(id='a'): ttl=-1 must be a finite time, at least 0 seconds"),
    (lambda: Server(URL, id="a", connect_timeout=0), "connect_timeout=0 must be a finite time, more than 0 seconds"),
    (lambda: Server(URL, id=3), "MCPServer(…): id=3 must be text"),
    (lambda: Server("nofile.py", id="a"), "MCPServer(id='a'): there is no file 'nofile.py'"),
    (
        lambda: Server("crm.example.com/mcp", id="a"),
        "is neither a URL, which begins with https:// or http://, nor a file",
    ),
    (lambda: Server(3, id="a"), "3 is no server: give a URL, a Path, a transport, or a function that makes one"),
]


@pytest.mark.filterwarnings("ignore:Could not generate return schema")
@pytest.mark.parametrize(("declare", "text"), WRONG, ids=[row[1][:40] for row in WRONG])
def test_what_is_wrong_is_refused_in_one_sentence(declare: Callable[[], Any], text: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        declare()
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", ["activity", "workflow"])
def test_what_others_serve_needs_a_queue(kind: str) -> None:
    """That of the run is polled by workers of the agent alone."""
    tools = Temporal("s")
    getattr(tools, kind)("Ship", input_model=Order)
    with pytest.raises(DeclarationError, match=f"the {kind} 'Ship' has no task queue, and would go to that of the run"):
        app(toolsets=[tools])
    app(toolsets=[tools], policies={"Ship": ToolPolicy(task_queue="go")})


def test_a_handoff_has_no_queue_to_name() -> None:
    with pytest.raises(DeclarationError, match="no agent is named 'biling'") as raised:
        app(tools=[handoff_tool("biling")])
    assert "task_queue" not in str(raised.value)


def test_a_nexus_operation_without_a_policy_is_told_so() -> None:
    tools = Temporal("s")
    tools.nexus("Track", service="Carrier", endpoint="carrier", input_model=Order)
    with pytest.raises(
        DeclarationError, match="tool 'Track', which no policy is for: Temporal begins a Nexus operation"
    ):
        app(toolsets=[tools])


def test_what_is_right_is_taken() -> None:
    app(tools=[agent_tool("other", params={"depth": "3"})], toolsets=[LOOKING, namespaces()])
    app(capabilities=[native(CodeExecutionTool())], toolsets=[files(folder_of), patching("/nowhere")])
    assert getattr(shop(), "__name__", None) is None
    anything = Contracts(id="any")
    anything.external(CANCEL)
