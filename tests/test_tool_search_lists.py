"""Which tools a step lists: S0-11, S0-12, and of hidden namespaces only those that it can use."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, FunctionToolset, RunContext, ToolReturn
from pydantic_ai.capabilities import AbstractCapability, Capability
from pydantic_ai.messages import ToolAvailabilityDeltaPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import DynamicToolset, FilteredToolset
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy
from perdure.toolsets.namespace import namespace, namespaces
from tests.harness import activities, messages, working
from tests.namespaces import LOCAL, NATIVE, Searching, numbered, office, search, spaces

SAFE = ToolPolicy(effect="safe")
SIX = ["billing_invoice", "billing_refund", "shipping_relabel", "shipping_track", "staff_payslip", "staff_vacation"]


class Lists(AbstractCapability[Any]):
    """Notes which tools the agent's toolsets list, each time."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        self.seen.append(sorted(tool.name for tool in tool_defs if tool.name != "look"))
        return tool_defs


async def test_a_step_lists_of_hidden_namespaces_what_it_can_use(client: Client) -> None:
    lists, ran = Lists(), list[str]()
    script = Searching({"look": {}}, search("refund"), {"billing_refund": {}}, "done")
    async with working(client, office(script, ran, lists)) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        assert await activities(handle) == [
            *("model_request", "tool:look", "model_request", "tool:search_tools"),
            *("model_request", "tool:billing_refund", "model_request"),
        ]
    one_each = ["billing_invoice", "shipping_track", "staff_vacation"]
    found = ["billing_invoice", "billing_refund", "shipping_track", "staff_vacation"]
    assert lists.seen == [one_each, one_each, one_each, SIX, found, found, found]
    assert ran == ["look", "refund"]


async def test_s2_15_many_namespaces_may_be_one_toolset(client: Client, cache: int) -> None:
    ran: list[str] = []
    script = Searching({"billing_refund": {}}, search("billing"), {"billing_refund": {}}, "done")
    joined = namespaces(*spaces(ran))
    agent = Agent(script.model, name="office", toolsets=[joined], retries=2)
    async with working(client, App(agents=[DurableAgent(agent, policies={"billing_*": SAFE})]), cache=cache) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        assert await activities(handle) == [
            *("model_request", "model_request", "tool:search_tools", "model_request", "tool:billing_refund"),
            "model_request",
        ]
        assert "is not available yet" in str((await messages(handle))[2])
    assert script.shown() == [[], [], *[["billing_invoice", "billing_refund"]] * 2]
    assert ran == ["refund"]


async def test_s2_19_names_of_namespaces_that_meet_in_a_run_end_it(client: Client) -> None:
    changing = DynamicToolset(lambda _: numbered("changing", ["b_c"], []), id="changing")
    one = namespace(changing, name="a", description="One.")
    other = namespace(numbered("other", ["c"], []), name="a_b", description="Two.")
    agent = Agent(Searching("never").model, name="office", toolsets=[namespaces(one, other)])
    async with working(client, App(agents=[agent])) as runs:
        failure = await runs.failure("office", "go")
    assert failure.type == "UserError"
    assert "Two tools of namespaces are named 'a_b_c'" in failure.message


async def test_everything_is_listed_for_a_provider_that_gets_hidden_tools(client: Client) -> None:
    lists = Lists()
    script = Searching({"look": {}}, "done", profile=NATIVE)
    async with working(client, office(script, [], lists)) as runs:
        await runs.run("office", "go")
    assert lists.seen == [SIX, SIX, SIX]


async def test_a_tool_may_reveal_one_of_a_namespace(client: Client, cache: int) -> None:
    ran: list[str] = []
    unlocking = FunctionToolset[Any](id="unlocking")

    @unlocking.tool_plain
    def unlock() -> ToolReturn[str]:
        """Reveal a tool that is listed for this call only by its name."""
        return ToolReturn("unlocked", tools=["staff_payslip"])

    script = Searching({"unlock": {}}, {"staff_payslip": {}}, "done")
    async with working(client, office(script, ran, tools=[unlocking]), cache=cache) as runs:
        await runs.run("office", "go")
    assert script.shown() == [["look", "unlock"], *[["look", "staff_payslip", "unlock"]] * 2]
    assert ran == ["payslip"]


async def test_a_capability_that_is_loaded_shows_its_whole_namespace(client: Client, cache: int) -> None:
    ran: list[str] = []
    maths = namespace(numbered("maths", ["add", "double", "halve"], ran), name="maths", description="Numbers.")
    owner = Capability[Any](id="calculator", description="Calculates.", toolsets=[maths], defer_loading=True)
    script = Searching({"load_capability": {"id": "calculator"}}, {"maths_halve": {}}, "done")
    agent = Agent(script.model, name="office", capabilities=[owner])
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        await runs.run("office", "go")
    assert [name for name in script.shown()[1] if "maths" in name] == ["maths_add", "maths_double", "maths_halve"]
    assert ran == ["halve"]


async def test_a_namespace_of_tools_that_change_is_asked_in_each_step(client: Client, cache: int) -> None:
    ran: list[str] = []

    def late(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
        return definition.name == "first" or ctx.run_step > 2

    changing = FilteredToolset(numbered("changing", ["first", "second"], ran), late)
    growing = numbered("growing", ["seed"], ran)
    spaces = [namespace(tools, name=name, description=name) for name, tools in (("one", changing), ("two", growing))]

    def grow() -> str:
        """Add a tool to a namespace while a run goes on."""
        if "grown" not in growing.tools:
            growing.add_function(lambda: ran.append("grown"), name="grown", description="Grown.")
        return "ok"

    script = Searching(search("one"), {"grow": {}}, search("one two"), {"one_second": {}, "two_grown": {}}, "done")
    agent = Agent(script.model, name="office", tools=[grow], toolsets=spaces, retries=2)
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        await runs.run("office", "go")
    assert script.shown() == [
        *(["grow"], ["grow", "one_first"], ["grow", "one_first"]),
        *[["grow", "one_first", "one_second", "two_grown", "two_seed"]] * 2,
    ]
    assert sorted(ran) == ["grown", "second"]


async def test_s0_11_a_tool_that_depends_on_the_step_is_there_in_that_step_alone(client: Client, cache: int) -> None:
    ran: list[str] = []
    asked: list[int] = []

    def second_only(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
        asked.append(ctx.run_step)
        return definition.name == "look" or ctx.run_step == 2

    tools = FilteredToolset(numbered("tools", ["look", "stamp"], ran), second_only)
    script = Searching({"look": {}}, {"stamp": {}}, {"look": {}}, "done")
    agent = Agent(script.model, name="office", toolsets=[tools])
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        await runs.run("office", "go")
    assert script.shown() == [["look"], ["look", "stamp"], ["look"], ["look"]]
    assert ran == ["look", "stamp", "look"]
    assert sorted(set(asked)) == [1, 2, 3, 4], "once for the request of a step and once for each of its calls"
    assert len(asked) == 2 * (4 + 3)


async def test_s0_12_the_tools_may_change_and_a_new_one_is_announced(client: Client, cache: int) -> None:
    ran: list[str] = []

    def later(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
        return definition.name == "look" or ctx.run_step > 1

    tools = FilteredToolset(numbered("tools", ["look", "stamp"], ran), later)
    script = Searching({"look": {}}, {"stamp": {}}, "done", profile=LOCAL)
    async with working(client, App(agents=[Agent(script.model, name="office", toolsets=[tools])]), cache=cache) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        parts = [part for one in await messages(handle) for part in one.parts]
    assert [part.tools_added for part in parts if isinstance(part, ToolAvailabilityDeltaPart)] == [["stamp"]]
    assert script.shown() == [["look"], ["look", "stamp"], ["look", "stamp"]]
    assert ran == ["look", "stamp"]
