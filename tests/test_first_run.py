"""The thinnest whole path: start by JSON, tools as activities, the answer."""

from __future__ import annotations

from pydantic_ai import Agent, FunctionToolset
from temporalio.client import Client

from perdure import App
from perdure.workflows.details import AGENT_NAME, AGENT_STATUS
from tests.harness import activities, working
from tests.scripts import Script


async def test_run_goes_from_prompt_to_answer_through_a_tool(client: Client, cache: int) -> None:
    tools = FunctionToolset[None](id="sums")
    ran: list[tuple[int, int]] = []

    @tools.tool_plain
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        ran.append((a, b))
        return a + b

    script = Script({"add": {"a": 1, "b": "2"}}, "It is 3.")
    app = App(agents=[Agent(script.model, name="sums", toolsets=[tools])])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("sums", "What is 1 + 2?")
        result = await handle.result()
        assert result["output"] == "It is 3."
        assert (result["turns"], result["steps"], result["usage"]["requests"], result["usage"]["tool_calls"]) == (
            1,
            2,
            2,
            1,
        )
        assert await activities(handle) == ["model_request", "tool:add", "model_request"]
    assert ran == [(1, 2)]
    assert len(script.requests) == 2


async def test_a_client_that_knows_nothing_of_perdure_starts_a_run_and_reads_its_result(client: Client) -> None:
    script = Script("Hello.")
    async with working(client, App(agents=[Agent(script.model, name="greeter")])) as runs:
        stranger = await Client.connect(client.service_client.config.target_host)
        result = await stranger.execute_workflow(
            "AgentWorkflow",
            {"agent": "greeter", "prompt": "Say hello."},
            id=f"stranger-{runs.task_queue}",
            task_queue=runs.task_queue,
        )
    assert result["output"] == "Hello."


async def test_search_attributes_show_agent_and_status(client: Client) -> None:
    script = Script("Hello.")
    async with working(client, App(agents=[Agent(script.model, name="shown")])) as runs:
        handle = await runs.start("shown", "Say hello.")
        await handle.result()
        attributes = (await handle.describe()).typed_search_attributes
    assert (attributes.get(AGENT_NAME), attributes.get(AGENT_STATUS)) == ("shown", "done")


async def test_attributes_that_are_not_registered_are_not_set(client: Client) -> None:
    script = Script("Hello.")
    app = App(agents=[Agent(script.model, name="hidden")], search_attributes=[])
    async with working(client, app) as runs:
        handle = await runs.start("hidden", "Say hello.")
        await handle.result()
        assert (await handle.describe()).typed_search_attributes.get(AGENT_NAME) is None
