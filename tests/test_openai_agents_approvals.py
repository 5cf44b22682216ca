"""Approvals and guardrails of the OpenAI Agents SDK's function tools, by the real library."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from agents import (
    RunContextWrapper,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
    ToolOutputGuardrail,
    ToolOutputGuardrailData,
    function_tool,
)
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from tests.deciding import answers, pending, update
from tests.foreign import ANN, RAN
from tests.harness import working
from tests.scripts import Script
from tests.sdk_tools import an_app, gated

pytestmark = pytest.mark.usefixtures("nothing_ran")


async def large(ctx: RunContextWrapper[Any], args: dict[str, Any], call_id: str) -> bool:
    """Whether a refund needs somebody."""
    RAN.append(("asked", args, call_id, ctx.context["user"]))
    if args["cents"] == 13:
        raise ValueError("no luck")
    return args["cents"] > 100


async def test_needs_approval_gates_the_call(client: Client, cache: int) -> None:
    calls = [("always", 1), ("large", 101), ("large", 100), ("large", 13)]
    script = Script([ToolCallPart(name, {"cents": cents}) for name, cents in calls], "done")
    app = an_app(script, gated("always", True), gated("large", large))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        rows = await pending(handle, 3)
        assert [row["args"]["cents"] for row in rows] == [1, 101, 13]
        for row, verb in zip(rows, ("approve", "deny", "approve"), strict=True):
            await update(handle, verb, {"call": row["call"], "by": "bob"})
        await handle.result()
        outcomes = [outcome for outcome, _ in (await answers(handle)).values()]
    assert outcomes == ["success", "denied", "success", "success"]
    assert sorted(row for row in RAN if row[0] != "asked") == [("always", 1), ("large", 13), ("large", 100)]
    assert ("asked", {"cents": 101}, "c0.1", "ann") in RAN


OPEN = ["yes"]
"""What the guardrail looks at, which may change while a call waits."""


def looks(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    """Rejects what isn't open any more, and ends the run for a thousand."""
    assert data.agent.name == "clerk"
    with pytest.raises(AttributeError, match="has a name, and no 'tools'"):
        _ = data.agent.tools
    if '"cents": 1000' in data.context.tool_arguments:
        return ToolGuardrailFunctionOutput.raise_exception()
    if OPEN[0] == "yes":
        return ToolGuardrailFunctionOutput.allow()
    return ToolGuardrailFunctionOutput.reject_content("closed by now")


def hides(data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
    """Replaces a result."""
    if data.output == "refunded 7":
        return ToolGuardrailFunctionOutput.reject_content("hidden")
    return ToolGuardrailFunctionOutput.allow()


GUARDED: dict[str, Any] = {
    "tool_input_guardrails": [ToolInputGuardrail(looks)],
    "tool_output_guardrails": [ToolOutputGuardrail(hides)],
}


async def test_s2_26_guardrails_look_again_after_the_approval(client: Client, cache: int) -> None:
    OPEN[0] = "yes"
    script = Script({"pay": {"cents": 7}}, {"refund": {"cents": 5}}, "done")
    app = an_app(script, gated("refund", True, **GUARDED), gated("pay", False, **GUARDED))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        (row,) = await pending(handle, 1)
        OPEN[0] = "no"
        await update(handle, "approve", {"call": row["call"], "by": "bob"})
        await handle.result()
        assert list((await answers(handle)).values()) == [("success", "hidden"), ("failed", "closed by now")]
    assert RAN == [("pay", 7)]


async def test_a_guardrail_may_end_the_run(client: Client) -> None:
    script = Script({"pay": {"cents": 1000}}, "done")
    async with working(client, an_app(script, gated("pay", False, **GUARDED))) as runs:
        failure = await runs.failure("clerk", "go", params=ANN)
    assert failure.type == "ToolInputGuardrailTripwireTriggered"
    assert RAN == []


async def test_s2_26_a_call_that_needs_an_approval_by_now_waits(client: Client, cache: int) -> None:
    """It didn't when it was planned. What is approved isn't asked about again."""

    async def by_now(ctx: RunContextWrapper[Any], args: dict[str, Any], call_id: str) -> bool:
        RAN.append("asked")
        return RAN.count("asked") > 1

    script = Script({"refund": {"cents": 5}}, "done")
    async with working(client, an_app(script, gated("refund", by_now)), cache=cache) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        (row,) = await pending(handle, 1)
        assert RAN == ["asked", "asked"]
        await update(handle, "approve", {"call": row["call"], "by": "bob"})
        await handle.result()
    assert RAN == ["asked", "asked", ("refund", 5)]


async def test_arguments_that_are_converted_wait_without_asking(client: Client) -> None:
    async def never(ctx: RunContextWrapper[Any], args: dict[str, Any], call_id: str) -> bool:
        RAN.append("asked")
        return False

    @function_tool(needs_approval=never)
    def cancel(day: date) -> str:
        """Cancels a day."""
        return str(day)

    script = Script({"cancel": {"day": "2026-11-30"}}, "done")
    async with working(client, an_app(script, cancel)) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        (row,) = await pending(handle, 1)
        await update(handle, "deny", {"call": row["call"], "by": "bob"})
        await handle.result()
        assert [outcome for outcome, _ in (await answers(handle)).values()] == ["denied"]
    assert RAN == []
