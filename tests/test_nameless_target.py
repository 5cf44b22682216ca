"""A plan that doesn't say what would run a call: the command would be refused by the server, for ever."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy
from perdure.toolsets.target import TARGET
from tests.deciding import answers
from tests.harness import activities, working
from tests.scripts import Script


def look(n: int) -> str:
    """Look something up."""
    return str(n)


@pytest.mark.parametrize(
    ("target", "policy"),
    [
        ({"kind": "activity"}, ToolPolicy(task_queue="go")),
        ({"kind": "workflow"}, ToolPolicy(task_queue="go")),
        ({"kind": "nexus", "name": "Track", "endpoint": "carrier"}, ToolPolicy(effect="safe")),
    ],
    ids=["activity", "workflow", "nexus"],
)
async def test_a_call_of_nothing_is_told_as_failed(
    client: Client, cache: int, target: dict[str, Any], policy: ToolPolicy
) -> None:
    tools: FunctionToolset[Any] = FunctionToolset(id="tools")
    tools.add_function(look, metadata={TARGET: target})  # by hand: `Target(…)` and `ContractToolset` refuse it
    agent = Agent(Script({"look": {"n": 1}}, "done").model, name="small", toolsets=[tools])
    async with working(client, App(agents=[DurableAgent(agent, policies={"look": policy})]), cache=cache) as runs:
        handle = await runs.start("small", "go")
        await handle.result()
        assert (await answers(handle))["c0.0"] == (
            "failed",
            "What was planned for this call doesn't say what would run it.",
        )
        assert set(await activities(handle)) <= {"prepare_run", "model_request"}
