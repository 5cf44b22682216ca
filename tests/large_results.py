"""An agent whose one tool returns something large, and what its model is answered."""

from __future__ import annotations

from typing import Any, Literal

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy
from perdure.toolsets.read_result import read_result
from tests.harness import activities, attempts, working
from tests.reading import returns
from tests.scripts import Script, Turn

LIMIT = 3_000

Rule = Literal["fail", "truncate", "store"]


def fetching(result: Any, policy: ToolPolicy | None, *turns: Turn, reads: Any = None) -> tuple[Script, list[str], App]:
    """An agent whose one tool returns `result`, with what ran."""
    ran: list[str] = []
    tools = FunctionToolset[object](id="fetching")

    @tools.tool_plain
    def fetch() -> Any:
        """Fetch."""
        ran.append("fetch")
        return result

    script = Script({"fetch": {}}, *turns, "done")
    agent = Agent(script.model, name="fetches", toolsets=[tools, reads or read_result])
    policies = {} if policy is None else {"fetch": policy}
    return script, ran, App(agents=[DurableAgent(agent, policies=policies, model_attempts=1)])


async def answer(client: Client, result: Any, policy: ToolPolicy | None, cache: int = 1000) -> ToolReturnPart:
    """What the model is answered; the tool has run once, in one attempt."""
    script, ran, app = fetching(result, policy)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("fetches", "go")
        assert (await handle.result())["output"] == "done"
        assert await activities(handle) == ["model_request", "tool:fetch", "model_request"]
        assert await attempts(handle) == [1, 1, 1]
    assert ran == ["fetch"]
    return returned(script.requests[1])


def returned(messages: list[ModelMessage]) -> ToolReturnPart:
    """The latest answer to a call."""
    return returns(messages)[-1]


def policy(rule: Rule, most: int | None = LIMIT) -> ToolPolicy:
    return ToolPolicy(max_result_bytes=most, on_large_result=rule)
