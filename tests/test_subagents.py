"""An agent as a tool of another: a run of its own, with its own transcript, whose output is the result of the call."""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from tests.deciding import answers, pending, refused, update
from tests.family import children, firm
from tests.harness import activities, check_run, working
from tests.scripts import Script


async def test_an_agent_answers_a_call(client: Client, cache: int) -> None:
    ran: list[Any] = []
    clerk = Script({"look": {"n": 7}}, "It is seven.")
    app = firm(Script({"ask_clerk": {"prompt": "look at 7"}}, "done"), clerk, ran)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("boss", "go", by="eve", metadata={"ticket": 3})
        result = await handle.result()
        assert result["output"] == "done"
        assert await answers(handle) == {"c0.0": ("success", "It is seven.")}
        (child,) = await children(client, handle)
        assert child.id.startswith(f"{handle.id}/1.1-")
        await check_run(child)
        assert await activities(child) == ["model_request", "tool:look", "model_request"]
        assert await activities(handle) == ["model_request", "model_request"]
        assert (await child.result())["audit"] == []
        assert result["usage"]["requests"] == 4
        assert result["usage"]["tool_calls"] == 2
    assert ran == [("look", 7)]
    assert clerk.requests[0][0].parts[0].content == "look at 7"  # pyright: ignore


async def test_what_waits_in_a_run_below_is_shown_with_its_address(client: Client, cache: int) -> None:
    ran: list[Any] = []
    clerk = Script([ToolCallPart("refund", {"n": 1}), ToolCallPart("refund", {"n": 2})], "refunded")
    app = firm(Script({"ask_clerk": {"prompt": "refund"}}, "done"), clerk, ran)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("boss", "go")
        rows = await pending(handle, 2)
        (child,) = await children(client, handle)
        assert [row["workflow_id"] for row in rows] == [child.id, child.id]
        own = await pending(child, 2)
        assert [row["call"] for row in own] == [row["call"] for row in rows]
        assert (await handle.query("status"))["state"] == "waiting"
        text = await refused(handle, "approve", {"call": rows[0]["call"], "by": "ann"})
        assert f"waits in run '{child.id}', which this run has started: send it there" in text
        await update(child, "approve", {"call": rows[0]["call"], "by": "ann"})
        (left,) = await pending(handle, 1)
        assert left["call"] == rows[1]["call"]
        await update(child, "deny", {"call": rows[1]["call"], "by": "ann"})
        assert (await handle.result())["output"] == "done"
        assert await handle.query("pending") == []
        await check_run(child)
    assert ran == [("refund", 1)]
