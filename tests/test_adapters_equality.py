"""Foreign tools answer in a durable run as in `agent.run`, all three libraries at once."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponsePart, ToolCallPart, ToolReturnPart
from temporalio.client import Client

from perdure import App, DurableAgent
from perdure.toolsets.langchain import LangChainToolset
from perdure.toolsets.openai_agents import OpenAIAgentsToolset
from perdure.toolsets.smolagents import SmolagentsToolset
from tests.deciding import answers
from tests.foreign import ANN
from tests.harness import working
from tests.langchain_tools import Shout, ranged, whose
from tests.langchain_tools import failing as handles
from tests.scripts import Script
from tests.sdk_tools import book, failing, slow
from tests.smolagents_tools import Counts, Lookup, weather

CALLS: list[ModelResponsePart] = [
    ToolCallPart("weather", {"city": "Oslo"}),
    ToolCallPart("weather", {"town": "Oslo"}),
    ToolCallPart("lookup", {"key": "a", "either": 1.5}),
    ToolCallPart("counts", {"ctx": 3}),
    ToolCallPart("book", {"day": "2026-11-30", "to": {"street": "Main"}, "seats": 3}),
    ToolCallPart("book", "{"),
    ToolCallPart("fails", {"key": "a"}),
    ToolCallPart("slow", {}),
    ToolCallPart("shout", {"text": "hey"}),
    ToolCallPart("whose", {"key": "a"}),
    ToolCallPart("range", {"low": 2, "high": 1}),
    ToolCallPart("handles", {"key": "a"}),
    ToolCallPart("nothing", {}),
]


def of_all_three(script: Script) -> Agent[dict[str, str], str]:
    """An agent with tools of three libraries."""
    from langchain_core.tools import ToolException

    chain = [Shout(), whose, ranged("range"), handles("handles", ToolException("no such key"), True)]
    toolsets: list[Any] = [
        SmolagentsToolset([weather, Lookup(), Counts()], id="smol"),
        OpenAIAgentsToolset([book, failing("fails"), slow("slow")], id="sdk"),
        LangChainToolset(chain, id="chain", inject={"user": lambda ctx: ctx.deps["user"]}),
    ]
    return Agent(script.model, name="clerk", deps_type=dict[str, str], toolsets=toolsets, retries=5)


async def test_tools_of_three_libraries_answer_as_in_agent_run(client: Client, cache: int) -> None:
    plain = await of_all_three(Script(CALLS, "done")).run("go", deps=ANN)
    parts = [part for message in plain.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    expected = {part.tool_call_id: (part.outcome, part.model_response_str(wrap_if_error=False)) for part in parts}
    app = App(agents=[DurableAgent(of_all_three(Script(CALLS, "done")), params_type=dict[str, str])])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        await handle.result()
        found = await answers(handle)
    assert found == expected
    assert [outcome for outcome, _ in found.values()].count("success") == 5
    assert len(found) == len(CALLS)
