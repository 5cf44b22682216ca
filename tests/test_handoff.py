"""A conversation that goes on with another agent."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.messages import ModelRequest, SystemPromptPart, ToolCallPart
from temporalio.client import Client
from temporalio.common import SearchAttributeKey

from perdure import App, Approval, DurableAgent, Limits, ToolPolicy
from perdure.toolsets.agent import handoff_tool
from tests.command import perdure
from tests.deciding import answers, pending, refused, update
from tests.harness import working
from tests.scripts import Script
from tests.sessions import answered, idle


class Account(BaseModel):
    account: int


class Front(BaseModel):
    account: int = 1
    desk: str = "front"


class Note(BaseModel):
    note: str


class Noted(Account):
    note: str = ""


def desk(script: Script, ran: list[Any], *tools: Any, **options: Any) -> DurableAgent:
    """The agent that everybody meets first."""
    own = FunctionToolset[Any](id="desk")

    @own.tool_plain
    def look(n: int) -> str:
        """Harmless."""
        ran.append(("look", n))
        return f"saw {n}"

    made: Any = Agent
    agent = made(
        script.model,
        name="desk",
        instructions="You sit at the desk.",
        system_prompt="Desk prompt.",
        toolsets=[own],
        tools=tools or [handoff_tool("billing", inherit=["account"])],
        deps_type=Front,
    )
    return DurableAgent(agent, params_type=Front, models={"small": script.model}, **options)


def billing(script: Script, ran: list[Any], **options: Any) -> DurableAgent:
    """The agent that conversations are handed to."""
    own = FunctionToolset[Account](id="billing")

    @own.tool
    def bill(ctx: RunContext[Account]) -> str:
        """The bill."""
        ran.append(("bill", ctx.deps.account))
        return f"bill of {ctx.deps.account}"

    made: Any = Agent
    agent = made(
        script.model,
        name="billing",
        instructions="You do the bills.",
        system_prompt="Billing prompt.",
        toolsets=[own],
        deps_type=Account,
    )
    options.setdefault("params_type", Account)
    return DurableAgent(agent, **options)


async def test_the_conversation_goes_on_with_the_other_agent(client: Client, cache: int) -> None:
    ran: list[Any] = []
    first = Script([ToolCallPart("look", {"n": 1}), ToolCallPart("transfer_to_billing", {})])
    second = Script("never", {"bill": {}}, "You owe 5.", "Still 5.")
    app = App(agents=[desk(first, ran), billing(second, ran, limits=Limits(requests=9))])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("desk", "my bill?", session={}, params={"account": 5}, model="small")
        await idle(handle)
        assert await answered(handle, "and now?", id="and now?") == "Still 5."
        status = await handle.query("status")
        assert (status["agent"], status["limits"]["requests"]) == ("billing", 9)
        assert await answers(handle) == {
            "c0.0": ("success", "saw 1"),
            "c0.1": ("success", "The conversation goes on with the agent 'billing'."),
            "c1.0": ("success", "bill of 5"),
        }
        audit = await handle.query("audit")
        assert [(row["event"], row["before"], row["agent"]) for row in audit] == [("handoff", "desk", "billing")]
        found = (await handle.describe()).typed_search_attributes
        assert found[SearchAttributeKey.for_keyword("AgentName")] == "billing"
        assert "agent 'billing' has no model 'small'" in await refused(handle, "set_model", {"model": "small"})
        shown = await perdure("show", handle.id, address=client.service_client.config.target_host)
        assert "handoff   desk → billing" in shown.out
        await update(handle, "close", {})
        await handle.result()
    assert ran == [("look", 1), ("bill", 5)]
    prompts = [part.content for part in second.requests[0][0].parts if isinstance(part, SystemPromptPart)]
    assert prompts == ["Billing prompt."]
    last = second.requests[-1][-1]
    assert isinstance(last, ModelRequest)
    assert last.instructions == "You do the bills."
    assert [tool.name for tool in second.infos[0].function_tools] == ["bill"]


async def test_s2_22_of_several_handoffs_the_first_wins(client: Client, cache: int) -> None:
    ran: list[Any] = []
    planned: dict[str, Any] = {"transfer_to_billing": {}, "transfer_to_other": {}, "look": {"n": 2}}
    calls: list[Any] = [ToolCallPart(name, args) for name, args in planned.items()]
    first, second = Script(calls), Script("never", "Billing here.")
    tools = [handoff_tool("billing", inherit=["account"]), handoff_tool("other")]
    other = DurableAgent(Agent(Script().model, name="other"))
    app = App(agents=[desk(first, ran, *tools), billing(second, ran), other])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("desk", "go", params={"account": 5})
        assert (await handle.result())["output"] == "Billing here."
        given = await answers(handle)
        assert given["c0.1"] == ("failed", "Ignored: of several handoffs in one response only the first counts.")
        assert [given["c0.0"][0], given["c0.2"]] == ["success", ("success", "saw 2")]
        history = await handle.fetch_history()
        names = [event.activity_task_scheduled_event_attributes.activity_type.name for event in history.events]
        assert names.count("prepare_run") == 2


async def test_a_refused_handoff_leaves_the_conversation_where_it_is(client: Client, cache: int) -> None:
    ran: list[Any] = []
    first = Script({"transfer_to_billing": {"note": "x"}}, "Still me.")
    tool = handoff_tool("billing", input=Note)

    class Picky(BaseModel):
        note: int

    app = App(agents=[desk(first, ran, tool), billing(Script(), ran, params_type=Picky)])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("desk", "go")
        assert (await handle.result())["output"] == "Still me."
        outcome, said = (await answers(handle))["c0.0"]
        assert outcome == "failed"
        assert said.startswith("The agent 'billing' failed: InvalidRequest: agent 'billing': params.note: Input should")
        assert (await handle.query("status"))["agent"] == "desk"


async def test_a_gated_handoff_is_kept_while_the_run_continues_as_new(rolling_client: Client, cache: int) -> None:
    ran: list[Any] = []
    first = Script([ToolCallPart("look", {"n": 1}), ToolCallPart("transfer_to_billing", {"note": "hi"})])
    turns: list[Any] = ["never"]
    for _ in range(6):
        turns += [{"bill": {}}, "Here."]
    second = Script(*turns)
    tool = handoff_tool("billing", input=Note, inherit=["account"])
    policies = {"transfer_to_billing": ToolPolicy(approval=Approval())}
    app = App(agents=[desk(first, ran, tool, policies=policies), billing(second, ran, params_type=Noted)])
    async with working(rolling_client, app, cache=cache) as runs:
        handle = await runs.start("desk", "go", session={}, params={"account": 8})
        (row,) = await pending(handle, 1)
        await update(handle, "approve", {"call": row["call"], "by": "ann"})
        for number in range(5):
            assert await answered(handle, f"again {number}", id=f"again {number}") == "Here."
        status = await handle.query("status")
        assert status["agent"] == "billing"
        await update(handle, "close", {})
        await handle.result()
        description = await handle.describe()
        assert description.raw_description.workflow_execution_info.execution.run_id != handle.first_execution_run_id
    assert ran == [("look", 1), *[("bill", 8)] * 6]
