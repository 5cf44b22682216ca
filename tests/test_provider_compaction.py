"""Summaries on the wire of a provider, and the compactions that providers make themselves."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import CompactionPart, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client

from perdure import App, DurableAgent
from tests.compacting import Summarizer, app, counting
from tests.harness import activities, messages, working
from tests.provider import shop
from tests.simulator import Simulator, call, calls, http_error, text


async def test_openai_takes_a_compacted_conversation(client: Client) -> None:
    grows = [calls(call("lookup", {"id": n}), usage=(100 * n, 20)) for n in (1, 2, 3)]
    script = [*grows, http_error(503), text("Orders 1 and 2 were sent."), text("All were sent.")]
    ran: list[int] = []
    with Simulator(script) as simulator:
        one = shop(simulator.model(retries=2), ran, compact_above=300, compact_keep=0)
        async with working(client, one) as runs:
            handle = await runs.start("shop", "Were 1, 2 and 3 sent?")
            assert (await handle.result())["output"] == "All were sent."
            assert (await activities(handle)).count("compact") == 1
    assert ran == [1, 2, 3]
    assert len(simulator.requests) == 6, "the client's own retries are off for a summary too"
    every = simulator.requests[-1].body["messages"]
    sent = [message for message in every if message["role"] != "system"]  # Pydantic AI's own note on such frames
    assert [message["role"] for message in sent] == ["user", "user", "assistant", "tool"]
    assert "Orders 1 and 2 were sent." in sent[0]["content"]
    assert sent[1]["content"] == "Were 1, 2 and 3 sent?"
    assert sent[3]["content"] == "order 3 was sent"
    summarised = simulator.requests[4].body
    assert "tools" not in summarised
    assert "order 1 was sent" in summarised["messages"][-1]["content"]


ANTHROPIC = CompactionPart(content="A summary by the provider.", provider_name="anthropic", metadata={"kept": True})
OPENAI = CompactionPart(
    id="cmp_1", provider_name="openai", provider_details={"encrypted_content": "gAAAA==", "type": "compaction"}
)


@pytest.mark.parametrize("part", [ANTHROPIC, OPENAI], ids=lambda part: part.provider_name)
async def test_a_compaction_by_the_provider_is_carried_as_it_is(
    client: Client, cache: int, part: CompactionPart
) -> None:
    requests: list[list[ModelMessage]] = []

    def turn(history: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        requests.append(history)
        if len(history) > 1:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[part, TextPart("Looking."), ToolCallPart("look", {"n": 1}, tool_call_id="id1")])

    tools = FunctionToolset[object](id="shop")

    @tools.tool_plain
    def look(n: int) -> str:
        return f"saw-{n}"

    agent = Agent(FunctionModel(turn), name="shop", toolsets=[tools])
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        await handle.result()
        stored = await messages(handle)
    assert requests[1][1].parts[0] == part
    assert stored[1].parts[0] == part


async def test_a_summary_by_the_provider_is_summarised_with_the_rest(client: Client) -> None:
    def first(*args: Any) -> ModelResponse:
        response: ModelResponse = inner(*args)
        done = any(isinstance(part, CompactionPart) for message in args[0] for part in message.parts)
        return response if done else ModelResponse(parts=[ANTHROPIC, *response.parts], usage=response.usage)

    script, summarizer = counting(4), Summarizer()
    inner: Any = script.turns[0]
    script.turns = (first,) * 5
    async with working(client, app(script, summarizer)) as runs:
        await runs.run("shop", "Look at all.")
    assert "A summary by the provider." in summarizer.asked[0]


async def test_the_window_of_a_known_model_needs_no_declaration(client: Client) -> None:
    from perdure.activities.prepare_run import compact_above

    with Simulator([]) as simulator:
        model = simulator.model(retries=0)
        window = model.context_window
        durable = DurableAgent(Agent(model, name="shop"))
        assert compact_above(durable, model) == (None if window is None else int(window * 0.8))
        known = FunctionModel(counting(1)._function, profile={"context_window": 1_000})  # pyright: ignore[reportPrivateUsage]
        assert compact_above(durable, known) == 800
        assert compact_above(DurableAgent(Agent(model, name="shop"), compact_above=0), known) is None
        assert compact_above(DurableAgent(Agent(model, name="shop"), compact_above=900), known) == 800
        assert compact_above(DurableAgent(Agent(model, name="shop"), compact_above=700), known) == 700
