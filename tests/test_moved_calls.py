"""Calls that wait while a deploy changes what serves their tool: made where it is served now, once, or not at all."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import Tool, ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from temporalio.client import Client

from perdure import App, Approval, DurableAgent, ToolPolicy
from perdure.contracts import ExternalCall, Target
from perdure.toolsets.agent import agent_tool, handoff_tool
from perdure.toolsets.contract import ToolContract
from perdure.toolsets.contract_toolset import ContractToolset
from perdure.toolsets.temporal import TemporalTools
from tests.deciding import answers, pending, update
from tests.harness import activities, until, working
from tests.remote import PackOrder, Warehouse, remote
from tests.scripts import Script


class Order(BaseModel):
    sku: str
    quantity: int = 1


class Given(BaseModel):
    sku: str = ""
    quantity: int = 1


class Late(Order):
    gift: bool = False


PACK = ToolContract("pack", "Pack an order.", Order, dict[str, Any])
GATE = ToolPolicy(approval=Approval())
WORDS = "The tool 'pack' is served in another way since this call was made: it was not run. Call it again."


def shop(script: Script, *toolsets: Any, policy: ToolPolicy = GATE, tools: list[Tool[Any]] | None = None) -> App:
    agent = Agent(script.model, name="shop", toolsets=[*toolsets], tools=tools or [])
    clerk = DurableAgent(Agent(Script("asked", "", "asked").model, name="clerk"), params_type=Given)
    return App(agents=[DurableAgent(agent, policies={"pack": policy}), clerk])


def by_function(ran: list[Any]) -> FunctionToolset[Any]:
    toolset = FunctionToolset[Any](id="old")

    @toolset.tool_plain
    def pack(sku: str, quantity: int = 1) -> dict[str, Any]:
        """Pack an order."""
        ran.append(sku)
        return {}

    return toolset


def by_temporal(queue: str, kind: str, model: type[Order] = Order, **more: Any) -> TemporalTools:
    tools = TemporalTools("new", task_queue=queue)
    declare = tools.workflow if kind == "workflow" else tools.activity
    name = "PackOrder" if kind == "workflow" else "ReserveStock"
    declare(name, name="pack", description="Pack an order.", input_model=model, **more)
    return tools


def by_contract(target: Target | None) -> ContractToolset:
    toolset = ContractToolset([PACK], id="new")
    if target is None:
        toolset.external(PACK)
    else:
        toolset.target(PACK, target)
    return toolset


async def waits(client: Client, script: Script, queue: str, ran: list[Any]) -> tuple[Any, str]:
    """A run whose call of a function waits for an approval; its worker has stopped."""
    async with working(client, shop(script, by_function(ran)), task_queue=queue, check=False) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        return handle, row["call"]


@pytest.mark.parametrize("served", ["activity", "workflow", "contract", "gated"])
async def test_a_call_goes_where_its_tool_is_served_now(client: Client, cache: int, served: str) -> None:
    ran: list[Any] = []
    script, queue, warehouse = Script({"pack": {"sku": "A-1"}}, "done"), f"q-{uuid.uuid4().hex[:8]}", Warehouse()
    handle, call = await waits(client, script, queue, ran)
    async with remote(client, [warehouse.reserve], [PackOrder]) as other:
        target = Target(kind="activity", name="ReserveStock", task_queue=other)
        options: dict[str, Any] = {"requires_approval": True} if served == "gated" else {}
        toolset = by_contract(target) if served == "contract" else by_temporal(other, served, **options)
        async with working(client, shop(script, toolset), task_queue=queue, cache=cache):
            await update(handle, "approve", {"call": call, "by": "ann"})
            assert (await handle.result())["usage"]["tool_calls"] == 1
            (found,) = (await answers(handle)).values()
            names = await activities(handle)
    assert ran == []
    assert found[0] == "success"
    assert "A-1" in found[1]
    assert names.count("tool:pack") == 1
    assert warehouse.ran == ([] if served == "workflow" else [("ReserveStock", {"sku": "A-1", "quantity": 1})])


@pytest.mark.parametrize("served", ["agent", "handoff", "other arguments"])
async def test_a_call_that_cant_be_moved_is_not_run_and_may_be_made_again(
    client: Client, cache: int, served: str
) -> None:
    ran: list[Any] = []
    script = Script({"pack": {"sku": "A-1"}}, {"pack": {"sku": "B-2"}}, "done", "done")
    queue, warehouse = f"q-{uuid.uuid4().hex[:8]}", Warehouse()
    handle, call = await waits(client, script, queue, ran)
    made: dict[str, Any] = {"name": "pack", "description": "Pack an order.", "input": Order}
    async with remote(client, [warehouse.reserve]) as other:
        match served:
            case "agent":
                app = shop(script, tools=[agent_tool("clerk", prompt="sku", **made)])
            case "handoff":
                app = shop(script, tools=[handoff_tool("clerk", **made)])
            case _:
                app = shop(script, by_temporal(other, "activity", Late))
        async with working(client, app, task_queue=queue, cache=cache):
            await update(handle, "approve", {"call": call, "by": "ann"})
            (row,) = await pending(handle, 1)
            assert "B-2" in str(row["args"])
            await update(handle, "approve", {"call": row["call"], "by": "ann"})
            await handle.result()
            first, second = (await answers(handle)).values()
    assert first == ("failed", WORDS)
    assert second[0] == "success"
    assert (ran, len(warehouse.ran)) == ([], 1 if served == "other arguments" else 0)


@pytest.mark.parametrize("served", ["contract", "external toolset"])
async def test_a_call_that_is_made_outside_now_waits_for_its_result(client: Client, cache: int, served: str) -> None:
    ran: list[Any] = []
    handed: list[str] = []

    async def hand_over(call: ExternalCall) -> None:
        handed.append(call.tool)

    script, queue = Script({"pack": {"sku": "A-1"}}, "done"), f"q-{uuid.uuid4().hex[:8]}"
    handle, call = await waits(client, script, queue, ran)
    schema: dict[str, Any] = {"type": "object", "properties": {"sku": {}, "quantity": {}}}
    outside = ExternalToolset([ToolDefinition(name="pack", parameters_json_schema=schema)], id="new")
    toolset = by_contract(None) if served == "contract" else outside
    app = shop(script, toolset, policy=ToolPolicy(approval=Approval(), dispatch=hand_over))
    async with working(client, app, task_queue=queue, cache=cache):
        await update(handle, "approve", {"call": call, "by": "ann"})

        async def is_handed_over() -> bool:
            return handed == ["pack"] and bool(await handle.query("pending"))

        await until(is_handed_over)
        (row,) = await pending(handle, 1)
        assert (row["kind"], row["args"]) == ("external", {"sku": "A-1", "quantity": 1})
        await update(handle, "complete", {"call": row["call"], "result": {"box": 7}})
        await handle.result()
        assert list((await answers(handle)).values()) == [("success", '{"box":7}')]
    assert ran == []


@pytest.mark.parametrize("effect", ["safe", "idempotent"])
async def test_what_a_call_may_have_done_before_isnt_done_elsewhere(client: Client, cache: int, effect: Any) -> None:
    attempts: list[Any] = []

    def pack(sku: str, quantity: int = 1) -> None:
        """Pack an order."""
        attempts.append(sku)
        raise ConnectionError

    again, warehouse, queue = ToolPolicy(effect=effect, backoff=1), Warehouse(), f"q-{uuid.uuid4().hex[:8]}"
    script = Script([ToolCallPart("pack", {"sku": "A-1"})], "done")
    async with remote(client, [warehouse.reserve]) as other:
        app = shop(script, policy=again, tools=[Tool(pack)])
        async with working(client, app, task_queue=queue, check=False) as runs:
            handle = await runs.start("shop", "go")

            async def has_failed() -> bool:
                return bool(attempts)

            await until(has_failed)
        app = shop(script, by_temporal(other, "activity"), policy=again)
        async with working(client, app, task_queue=queue, cache=cache):
            await handle.result()
            (found,) = (await answers(handle)).values()
    assert found[0] == ("success" if effect == "safe" else "failed")
    assert ("An earlier attempt may have run" in found[1]) == (effect == "idempotent")
    assert len(warehouse.ran) == (1 if effect == "safe" else 0)
