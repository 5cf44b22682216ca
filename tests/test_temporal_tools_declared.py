"""How tools of others are declared, and what is wrong with that when they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.test import TestModel
from temporalio import activity, workflow
from temporalio.common import RawValue

from perdure import App, DurableAgent, ToolPolicy
from perdure.errors import DeclarationError
from perdure.toolsets.target import result_of, target_of
from perdure.toolsets.temporal import TemporalTools
from tests.command import ROOT, perdure
from tests.remote import PackOrder, Warehouse
from tests.shipping import Order


@activity.defn
async def greet(name: str, times: int = 1) -> str:
    """Greet somebody.

    Args:
        name: Whom.
        times: How often.
    """
    return name * times


@activity.defn(dynamic=True)
async def anything(args: Sequence[RawValue]) -> None: ...


@workflow.defn
class Ship:
    @workflow.run
    async def run(self, order: Order) -> str:
        """Ship an order."""
        return order.sku


async def test_functions_and_classes_declare_themselves() -> None:
    tools = TemporalTools("mine", task_queue="theirs")
    tools.activity(greet)
    tools.activity(Warehouse.quote, task_queue="own")
    tools.activity(Warehouse().ping)
    tools.workflow(Ship)
    tools.workflow(PackOrder, name="pack", input_model=Order)
    found = {name: target_of(tool.tool_def) for name, tool in tools.tools.items()}
    assert {name: (one.kind, one.name, one.positional, one.task_queue) for name, one in found.items() if one} == {
        "greet": ("activity", "greet", ["name", "times"], "theirs"),
        "quote": ("activity", "QuoteShipping", ["city", "grams", "express"], "own"),
        "ping": ("activity", "Ping", [], "theirs"),
        "Ship": ("workflow", "Ship", [], "theirs"),
        "pack": ("workflow", "PackOrder", [], "theirs"),
    }
    assert tools.tools["greet"].description == "Greet somebody."
    schema = tools.tools["greet"].function_schema.json_schema
    assert schema["properties"]["times"] == {"default": 1, "description": "How often.", "type": "integer"}
    assert set(tools.tools["Ship"].function_schema.json_schema["properties"]) == {"sku", "quantity", "shipBy"}


class Clash(BaseModel):
    order: str


async def clashing(order: Clash) -> None: ...


async def starred(*parts: str) -> None: ...


async def named(*, part: str) -> None: ...


async def contextual(ctx: RunContext[None], part: str) -> None: ...


async def two(one: str, other: str) -> None: ...


Declared = Callable[[TemporalTools], Any]
SAFE = ToolPolicy(effect="safe", attempts=3)
UNKNOWN: dict[str, Any] = {"strictly": True}
NEXUS: dict[str, Any] = {"service": "S", "endpoint": "e"}


WRONG: list[tuple[Declared, str]] = [
    (lambda tools: tools.activity("X"), "nothing says what it takes"),
    (lambda tools: tools.activity(two), "neither the type of an activity nor has it @activity.defn"),
    (lambda tools: tools.workflow(Clash), "nor has it @workflow.defn"),
    (lambda tools: tools.activity(anything), "is dynamic"),
    (lambda tools: tools.activity("X", signature=starred), "'parts' of starred is variadic positional"),
    (lambda tools: tools.activity("X", signature=named), "'part' of named is keyword-only"),
    (lambda tools: tools.activity("X", signature=contextual), "can't take a RunContext"),
    (lambda tools: tools.activity("X", signature=clashing), "'order' has the name of a field of its own type"),
    (lambda tools: tools.activity("X", signature=two, input_model=Order), "signature and input_model say the same"),
    (lambda tools: tools.activity("X", input_model=str), "must be a model, dataclass or TypedDict"),
    (lambda tools: tools.activity("X", input_model=object()), "isn't a type that Pydantic reads"),
    (lambda tools: tools.activity("X", signature=two, output_model={"type": "nope"}), "isn't a JSON Schema"),
    (lambda tools: tools.activity("X", signature=two, **UNKNOWN), "strictly"),
    (lambda tools: tools.activity("", signature=two), "name='' must have 1 to 1000 bytes"),
    (lambda tools: tools.activity("x" * 1001, signature=two), "must have 1 to 1000 bytes"),
    (lambda tools: tools.activity("X", signature=two, task_queue="/_sys/x"), "task_queue='/_sys/x' must"),
    (lambda tools: tools.nexus("X", signature=two, **NEXUS), "takes one argument, not ['one', 'other']"),
    (lambda tools: tools.nexus("X", input_model=Order, service="", endpoint="e"), "service='' must"),
    (lambda tools: [tools.activity(greet), tools.activity(greet)], "Tool name conflicts"),
]  # fmt: skip


@pytest.mark.parametrize(("declare", "text"), WRONG)
async def test_what_is_wrong_is_wrong_when_it_is_declared(declare: Declared, text: str) -> None:
    with pytest.raises(DeclarationError, match=re.escape(text)):
        declare(TemporalTools("wrong"))


UNKEPT: list[tuple[Declared, ToolPolicy, str]] = [
    (lambda tools: tools.activity(greet), ToolPolicy(on_large_result="truncate"), "on_large_result='truncate'"),
    (lambda tools: tools.workflow(Ship), ToolPolicy(schedule_to_start=5), "a workflow has no schedule_to_start"),
    (lambda tools: tools.nexus("X", input_model=Order, **NEXUS), ToolPolicy(), "begins a Nexus operation again"),
    (lambda tools: tools.nexus("X", input_model=Order, **NEXUS), SAFE, "attempts don't apply"),
]  # fmt: skip


@pytest.mark.parametrize(("declare", "policy", "text"), UNKEPT)
async def test_a_policy_that_cant_be_kept_is_refused(declare: Declared, policy: ToolPolicy, text: str) -> None:
    tools = TemporalTools("tools")
    declare(tools)
    agent = Agent(TestModel(), name="agent", toolsets=[tools.prefixed("p")])
    with pytest.raises(DeclarationError, match=re.escape(text)):
        App(agents=[DurableAgent(agent, policies={"p_*": policy})])


async def test_a_tool_of_others_says_so_where_no_run_makes_its_call() -> None:
    tools = TemporalTools("tools")
    tools.activity(greet)
    with pytest.raises(UserError, match="only a run of AgentWorkflow can make this call"):
        await Agent(TestModel(), name="agent", toolsets=[tools]).run("go")


@dataclass(frozen=True)
class Pledge:
    """What a contract has."""

    name: str = "reserve"
    description: str = "Reserve stock."
    input_model: Any = Order
    output_model: Any = int


async def test_a_contract_says_it_all() -> None:
    tools = TemporalTools("tools")
    tools.activity("ReserveStock", contract=Pledge())
    definition = tools.tools["reserve"].tool_def
    assert definition.description == "Reserve stock."
    assert set(definition.parameters_json_schema["properties"]) == {"sku", "quantity", "shipBy"}
    assert result_of(definition) is int
    with pytest.raises(DeclarationError, match="contract says what it returns"):
        tools.activity("ReserveStock", contract=Pledge(), output_model=str)
    with pytest.raises(DeclarationError, match="contract and input_model say the same"):
        tools.activity("ReserveStock", contract=Pledge(), input_model=Order)


@pytest.mark.parametrize("metadata", [None, {"perdure_target": None, "perdure_result": str, "mine": 1}])
def test_metadata_of_the_app_takes_nothing_away(metadata: dict[str, Any] | None) -> None:
    tools = TemporalTools("tools")
    tools.activity("ReserveStock", contract=Pledge(), metadata=metadata)
    definition = tools.tools["reserve"].tool_def
    target = target_of(definition)
    assert target is not None
    assert target.name == "ReserveStock"
    assert result_of(definition) is int
    assert (definition.metadata or {}).get("mine") == (metadata or {}).get("mine")


async def test_check_shows_who_serves_a_tool(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "temporal-tools.md").read_text()
    (tmp_path / "declared.py").write_text(re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)[0])
    shown = await perdure("check", "declared:app", "--json", cwd=tmp_path)
    served = {tool["name"]: tool["served_by"] for tool in json.loads(shown.out)["agents"][0]["tools"]}
    assert served == {
        "ReserveStock": "activity ReserveStock on the queue warehouse-go",
        "quote_shipping": "activity QuoteShipping on the queue warehouse-go",
        "weigh": "activity weigh on the queue warehouse-python",
        "pack": "workflow PackOrder on the queue warehouse-go",
        "track": "Nexus operation Carrier.Track at carrier",
    }
