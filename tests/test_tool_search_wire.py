"""What a provider is sent: hidden tools by OpenAI's Chat Completions, and a tool of its own."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.native_tools import WebSearchTool
from temporalio.client import Client

from perdure import App
from tests.harness import activities, working
from tests.namespaces import spaces
from tests.simulator import Received, Simulator, call, calls, text


def named(request: Received) -> list[str]:
    """The tools of a request, as the provider got them."""
    return [tool["function"]["name"] for tool in request.body.get("tools", [])]


async def test_s2_14_the_wire_carries_what_was_found_and_no_more(client: Client, cache: int) -> None:
    ran: list[str] = []
    turns = [
        calls(call("search_tools", {"queries": ["billing"]})),
        calls(call("billing_refund", {"n": 3}), call("shipping_track", {})),
        text("Refunded."),
    ]
    with Simulator(turns) as simulator:
        agent = Agent(simulator.model(), name="office", toolsets=spaces(ran), retries=2)
        async with working(client, App(agents=[agent]), cache=cache) as runs:
            handle = await runs.start("office", "Refund order 3.")
            assert (await handle.result())["output"] == "Refunded."
            assert await activities(handle) == [
                *("model_request", "tool:search_tools", "model_request", "tool:billing_refund", "model_request"),
            ]
    found = ["billing_invoice", "billing_refund"]
    assert [sorted(named(request)) for request in simulator.requests] == [
        *(["search_tools"], [*found, "search_tools"], [*found, "search_tools"]),
    ]
    answers: list[Any] = [row["content"] for row in simulator.requests[2].body["messages"] if row["role"] == "tool"]
    assert answers[1] == "refund 3"
    assert "'shipping_track' is not available yet: search for it first" in answers[2]
    assert ran == ["refund"]


async def test_s2_type_03_web_search_is_asked_of_the_provider(client: Client) -> None:
    with Simulator([text("It rains.")]) as simulator:
        search = NativeTool[None](WebSearchTool(search_context_size="low"))
        agent = Agent(simulator.model("gpt-4o-search-preview"), name="office", capabilities=[search])
        async with working(client, App(agents=[agent])) as runs:
            handle = await runs.start("office", "Does it rain in Oslo?")
            assert (await handle.result())["output"] == "It rains."
            assert await activities(handle) == ["model_request"]
    (request,) = simulator.requests
    assert request.body["web_search_options"] == {"search_context_size": "low"}
    assert named(request) == []
