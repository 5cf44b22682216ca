"""The thinnest whole path: start by JSON, tools as activities, the answer."""

from __future__ import annotations

from pydantic_ai import Agent, FunctionToolset
from temporalio.client import Client

from perdure import App
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
