"""What a search has revealed stays so: through continue-as-new, compactions, turns, and for a provider's own search."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.messages import (
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from temporalio.client import Client

from perdure.toolsets.search import by_namespace
from tests.compacting import Summarizer, compacted, counting
from tests.harness import activities, messages, working
from tests.namespaces import NATIVE, Searching, office, search, searched
from tests.sessions import SESSION, answered, closed, runs_of

BILLING = ["billing_invoice", "billing_refund", "look"]


async def test_s2_14_what_was_found_is_kept_by_continue_as_new(rolling_client: Client, cache: int) -> None:
    ran: list[str] = []
    script = Searching(search("billing"), *[{"look": {"n": n}} for n in range(8)], {"billing_refund": {}}, "done")
    async with working(rolling_client, office(script, ran), cache=cache) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        assert await runs_of(handle) > 2
    assert script.shown() == [["look"], *[BILLING] * 10]
    assert ran == ["look"] * 8 + ["refund"]


async def test_s2_14_what_was_found_is_kept_for_later_turns(rolling_client: Client, cache: int) -> None:
    ran: list[str] = []
    looks: list[dict[str, Any]] = [{"look": {}}] * 4
    script = Searching(search("billing"), "found", *looks, "looked", {"billing_refund": {}}, "refunded")
    async with working(rolling_client, office(script, ran), cache=cache) as runs:
        handle = await runs.start("office", **SESSION)
        assert [await answered(handle, text) for text in ("Find.", "Look.", "Refund.")] == [
            *("found", "looked", "refunded"),
        ]
        await closed(handle)
        assert await runs_of(handle) > 1
    assert script.shown() == [["look"], *[BILLING] * 8]
    assert ran == ["look"] * 4 + ["refund"]


async def test_s2_14_what_was_found_is_kept_by_compactions_of_runs_that_continue_as_new(
    rolling_client: Client, cache: int
) -> None:
    ran: list[str] = []
    turns: dict[int, dict[str, Any]] = {1: search("billing"), 6: search("parcels")}
    counted = counting(12, lambda n: turns.get(n, {"billing_refund" if n % 2 else "billing_invoice": {"n": n}}))
    script = Searching(*counted.turns)
    async with working(rolling_client, office(script, ran, **compacted(Summarizer())), cache=cache) as runs:
        handle = await runs.start("office", "go")
        assert (await handle.result())["output"] == "done"
        page = await handle.query("transcript")
        notes = [entry for entry in page["entries"] if entry["kind"] == "note"]
        assert len(notes) > 2
        assert await runs_of(handle) > 2
    assert all(set(BILLING) <= set(shown) for shown in script.shown()[1:])
    assert all("shipping_track" in shown for shown in script.shown()[6:])
    assert not any("staff_payslip" in shown for shown in script.shown())
    assert len(ran) == 10


async def test_s2_14_a_providers_own_search_needs_no_activity(client: Client, cache: int) -> None:
    ran: list[str] = []
    script = Searching([*searched("billing_refund"), ToolCallPart("billing_refund", {"n": 1})], "done", profile=NATIVE)
    async with working(client, office(script, ran), cache=cache) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        assert await activities(handle) == ["model_request", "tool:billing_refund", "model_request"]
        (first, *_) = [one for one in await messages(handle) if isinstance(one, ModelResponse)]
        assert list(first.parts[:2]) == searched("billing_refund")
    assert ran == ["refund"]
    assert script.requests[1][1].parts[:2] == searched("billing_refund"), "it is sent back as it came"
    assert "search_tools" not in [tool.name for tool in script.infos[0].function_tools]


async def test_s2_14_a_tool_that_the_providers_search_has_not_found_does_not_run(client: Client) -> None:
    ran: list[str] = []
    turn = [*searched("billing_refund"), ToolCallPart("shipping_track", {})]
    script = Searching(turn, "done", profile=NATIVE)
    async with working(client, office(script, ran)) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        assert await activities(handle) == ["model_request", "model_request"]
        assert "'shipping_track' is not available yet" in str((await messages(handle))[2])
    assert ran == []


async def test_s2_14_what_a_provider_found_is_kept_by_continue_as_new_and_compactions(
    rolling_client: Client, cache: int
) -> None:
    ran: list[str] = []
    first = [*searched("billing_refund"), ToolCallPart("billing_refund", {"n": 1}, tool_call_id="id1")]
    script = Searching(first, *counting(10, lambda n: {"billing_refund": {"n": n}}).turns[1:], profile=NATIVE)
    async with working(rolling_client, office(script, ran, **compacted(Summarizer())), cache=cache) as runs:
        handle = await runs.start("office", "go")
        assert (await handle.result())["output"] == "done"
        assert await runs_of(handle) > 2
        page = await handle.query("transcript")
        assert [entry["kind"] for entry in page["entries"]].count("note") > 1
    assert ran == ["refund"] * 10


@pytest.mark.parametrize("strategy", ["keywords", by_namespace])
async def test_s2_14_a_search_of_ours_for_a_provider_that_asks_for_it(client: Client, strategy: Any) -> None:
    ran: list[str] = []
    script = Searching(search("billing"), [ToolCallPart("billing_refund", {}), TextPart("now")], "done", profile=NATIVE)
    async with working(client, office(script, ran, ToolSearch(strategy=strategy))) as runs:
        handle = await runs.start("office", "go")
        await handle.result()
        assert await activities(handle) == [
            *("model_request", "tool:search_tools", "model_request", "tool:billing_refund", "model_request"),
        ]
    assert ran == ["refund"]
