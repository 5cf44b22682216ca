"""Tools that are hidden until they are searched for: S2-14 to S2-19."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic_ai import RunContext
from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.messages import ToolAvailabilityDeltaPart, ToolReturnPart, ToolSearchReturnPart
from pydantic_ai.tools import ToolDefinition
from temporalio.client import Client

from perdure import ToolPolicy
from perdure.toolsets.search import by_namespace
from tests.equality_cases.base import call, calls
from tests.harness import Handle, activities, attempts, messages, working
from tests.namespaces import Searching, office, search
from tests.reading import returns

Definitions = Sequence[ToolDefinition]
BILLING = ["billing_invoice", "billing_refund", "look"]


async def returned(handle: Handle) -> list[ToolReturnPart]:
    """The answers to the calls of a run, in order."""
    return returns(await messages(handle))


@pytest.mark.parametrize("strategy", [None, "keywords", by_namespace])
@pytest.mark.parametrize("query", ["billing", "refunds and invoices"])
async def test_s2_15_a_search_by_the_namespaces_words_reveals_its_tools_only(
    client: Client, strategy: Any, query: str
) -> None:
    if query != "billing" and strategy is not by_namespace:
        query = "refunds invoices"  # the words of a namespace; the default counts "and" too, which others have
    ran: list[str] = []
    script = Searching(search(query), {"billing_refund": {"n": 7}}, "done")
    async with working(client, office(script, ran, ToolSearch(strategy=strategy))) as runs:
        handle = await runs.start("office", "Refund order 7.")
        await handle.result()
        assert await activities(handle) == [
            *("model_request", "tool:search_tools"),
            *("model_request", "tool:billing_refund"),
            "model_request",
        ]
        assert (await returned(handle))[-1].content == "refund 7"
    assert script.shown() == [["look"], BILLING, BILLING]
    assert ran == ["refund"]
    (shown,) = [tool for tool in script.infos[1].function_tools if tool.name == "billing_refund"]
    assert shown.description == "To refund by number.\n\nPart of billing: Invoices, refunds and payments."


async def test_s2_14_a_search_beside_ordinary_calls_in_one_response(client: Client, cache: int) -> None:
    ran: list[str] = []
    turn = calls(call("look"), call("search_tools", {"queries": ["billing"]}), call("look", {"n": 1}))
    script = Searching(turn, {"billing_refund": {}}, "done")
    async with working(client, office(script, ran), cache=cache) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        assert sorted((await activities(handle))[1:4]) == ["tool:look", "tool:look", "tool:search_tools"]
        answers = [part.tool_name for part in await returned(handle)]
        assert answers == ["look", "search_tools", "look", "billing_refund"]
    assert ran == ["look", "look", "refund"]
    assert script.shown() == [["look"], BILLING, BILLING]


async def test_s2_14_a_hidden_tool_that_is_called_is_answered_with_how_to_get_it(client: Client, cache: int) -> None:
    ran: list[str] = []
    beside = calls(call("billing_refund"), call("search_tools", {"queries": ["billing"]}))
    script = Searching({"billing_refund": {}}, beside, {"billing_refund": {}}, "done")
    async with working(client, office(script, ran), cache=cache) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        hidden, again, _, found = await returned(handle)
        for part in (hidden, again):
            assert part.outcome == "retried"
            assert "Tool 'billing_refund' is not available yet: search for it first" in str(part.content)
        assert found.content == "refund 0"
        assert await activities(handle) == [
            *("model_request", "model_request", "tool:search_tools"),
            *("model_request", "tool:billing_refund", "model_request"),
        ]
    assert ran == ["refund"]


async def test_s2_14_two_searches_in_one_response_and_a_tool_that_is_found_twice(client: Client, cache: int) -> None:
    turn = calls(call("search_tools", {"queries": ["billing"]}), call("search_tools", {"queries": ["refund", "track"]}))
    script = Searching(turn, search("refund"), {"billing_refund": {}, "shipping_track": {}}, "done")
    ran: list[str] = []
    async with working(client, office(script, ran), cache=cache) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        found = [part for part in await returned(handle) if isinstance(part, ToolSearchReturnPart)]
        names = [[tool["name"] for tool in part.discovered_tools] for part in found]
        assert names[0] == ["billing_invoice", "billing_refund"]
        assert set(names[1]) == {"billing_refund", "shipping_track"}
        assert "billing_refund" in names[2], "what was found before is found again"
        deltas = [part for one in await messages(handle) for part in one.parts]
        added = [name for part in deltas if isinstance(part, ToolAvailabilityDeltaPart) for name in part.tools_added]
        assert len(added) == len(set(added))
    for shown in script.shown()[1:]:
        assert shown == ["billing_invoice", "billing_refund", "look", "shipping_track"]
    assert sorted(ran) == ["refund", "track"]


async def test_s2_14_a_strategy_may_be_an_embedding(client: Client, cache: int) -> None:
    ran: list[str] = []
    asked: list[Any] = []

    def vector(text: str) -> list[int]:
        return [text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"]

    async def nearest(ctx: RunContext[Any], queries: Sequence[str], tools: Definitions) -> list[str]:
        asked.append((list(queries), ctx.tool_call_id, len(tools)))
        await asyncio.sleep(0)  # a service would be asked here
        goal = vector(" ".join(queries))

        def distance(tool: ToolDefinition) -> int:
            return sum((a - b) ** 2 for a, b in zip(goal, vector(tool.description or ""), strict=True))

        return [tool.name for tool in sorted(tools, key=distance)]

    script = Searching(search("To track by number. Part of shipping: parcels, where are they"), "done")
    search_one = ToolSearch[Any](strategy=nearest, max_results=1)
    async with working(client, office(script, ran, search_one), cache=cache) as runs:
        await runs.run("office", "go")
    assert script.shown() == [["look"], ["look", "shipping_track"]]
    assert asked == [(["To track by number. Part of shipping: parcels, where are they"], "c0.0", 6)]


async def test_s2_14_a_search_that_fails_is_repeated_as_it_only_looks(client: Client) -> None:
    tries: list[int] = []

    def moody(ctx: RunContext[Any], queries: Sequence[str], tools: Definitions) -> list[str]:
        tries.append(len(tools))
        if len(tries) < 3:
            raise ConnectionError("the index is away")
        return ["staff_vacation"]

    script = Searching(search("holiday"), "done")
    async with working(client, office(script, [], ToolSearch[Any](strategy=moody))) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        assert await attempts(handle) == [1, 3, 1]
    assert script.shown()[1] == ["look", "staff_vacation"]


async def test_s2_14_a_policy_for_the_search_is_kept(client: Client) -> None:
    def broken(ctx: RunContext[Any], queries: Sequence[str], tools: Definitions) -> list[str]:
        raise ConnectionError("the index is away")

    script = Searching(search("holiday"), "done")
    app = office(script, [], ToolSearch[Any](strategy=broken), policies={"search_*": ToolPolicy(effect="unsafe")})
    async with working(client, app) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        assert await attempts(handle) == [1, 1, 1]
        (answer,) = await returned(handle)
        assert answer.outcome == "failed"


async def test_s2_14_a_search_that_finds_nothing_and_one_for_nothing(client: Client) -> None:
    script = Searching(search("zebra"), search(" "), search("holiday employees"), "done")
    async with working(client, office(script, [])) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        nothing, blank, found = await returned(handle)
        assert "No matching tools found" in str(nothing.content)
        assert blank.outcome == "retried"
        assert "at least one non-empty search query" in str(blank.content)
        assert "staff_vacation" in str(found.content)
    assert script.shown() == [["look"], ["look"], ["look"], ["look", "staff_payslip", "staff_vacation"]]
