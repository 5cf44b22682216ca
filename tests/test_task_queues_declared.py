"""Queues for tools as they are declared: limits that are none, queues that nobody would serve."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import DynamicToolset, ExternalToolset
from temporalio.client import Client

from perdure import App, DeclarationError, DurableAgent, TaskQueue, ToolPolicy
from perdure.contracts import Target
from perdure.toolsets.target import metadata_of
from tests.crm import Crm
from tests.harness import working
from tests.scripts import Script

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"max_concurrent_activities": 0}, "max_concurrent_activities=0 must be a whole number"),
    ({"max_concurrent_activities": 1.5}, "max_concurrent_activities=1.5 must be a whole number"),
    ({"max_activities_per_second": 0}, "max_activities_per_second=0 must be a finite number"),
    ({"max_task_queue_activities_per_second": float("inf")}, "max_task_queue_activities_per_second=inf must be"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_a_limit_that_is_none_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        TaskQueue(**options)


def test_a_queue_that_nobody_would_serve_is_refused() -> None:
    agent = Agent(Script("x").model, name="sales", tools=[Crm().look_up])
    durable = DurableAgent(agent, policies={"look_*": ToolPolicy(task_queue="cmr")})
    with pytest.raises(DeclarationError, match=r"policy 'look_\*' puts its tools on the task queue 'cmr', which no"):
        App(agents=[durable], task_queues={"crm": TaskQueue()})
    only_a_run_knows: DynamicToolset[Any] = DynamicToolset(lambda _: None, id="later")
    agent = Agent(Script("x").model, name="sales", toolsets=[only_a_run_knows], deps_type=Any)
    with pytest.raises(DeclarationError, match=r"Known queues: \['crm'\]"):
        App(
            agents=[DurableAgent(agent, policies={"look_*": ToolPolicy(task_queue="cmr")})],
            task_queues={"crm": TaskQueue()},
        )
    wrong: Any = {"crm": 5}
    with pytest.raises(DeclarationError, match=r"task_queues\['crm'\]=5 must be a TaskQueue"):
        App(agents=[agent], task_queues=wrong)


def test_the_queue_of_a_tool_that_runs_elsewhere_need_not_be_declared() -> None:
    elsewhere: FunctionToolset[Any] = FunctionToolset(id="go")
    elsewhere.add_function(Crm().look_up, metadata=metadata_of(Target(kind="activity", name="LookUp")))
    outside: ExternalToolset[Any] = ExternalToolset([ToolDefinition(name="sign")], id="outside")
    agent = Agent(Script("x").model, name="sales", toolsets=[elsewhere, outside], deps_type=Any)
    app = App(agents=[DurableAgent(agent, policies={"*": ToolPolicy(task_queue="go")})])
    assert app.agent("sales").policy("look_up").task_queue == "go"
    assert app.task_queues == {}


async def test_the_queue_of_the_runs_is_not_limited(client: Client) -> None:
    crm = Crm()
    with pytest.raises(DeclarationError, match="is the queue on which this worker serves runs"):
        async with working(client, crm.app, task_queue=crm.queue):
            pass
    with pytest.raises(DeclarationError, match="name either what is served or what isn't"):
        async with working(client, crm.app, only=[crm.queue], without=[crm.queue]):
            pass
