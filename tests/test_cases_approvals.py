"""Cases B and C of approvals that need more than `tests.shop`: what a decision is used for."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.messages import ModelRequest, ToolCallPart, ToolReturnPart
from temporalio.client import Client

from perdure import App, Approval, DurableAgent, ToolPolicy, current_call
from perdure.client import PerdureClient, RunClosed
from tests.deciding import answers, pending, update
from tests.harness import activities, attempts, until, working
from tests.scripts import Script
from tests.shop import shop

Attempt = tuple[int, str]
"""What the gated tool appends when it truly runs: its attempt and its idempotency key."""


def bank(script: Script, ran: list[Attempt], policy: ToolPolicy) -> App:
    """A gated tool whose effect is done, and which then raises, at its first attempt."""
    tools = FunctionToolset[None](id="bank")

    @tools.tool
    def pay(ctx: RunContext[None], cents: int) -> str:
        """Pays, and loses its connection before it can say so."""
        assert ctx.tool_call_approved
        call = current_call()
        ran.append((call.attempt, call.idempotency_key))
        if call.attempt == 1:
            raise ConnectionError("reset by peer")
        return f"paid {cents}"

    return App(agents=[DurableAgent(Agent(script.model, name="bank", toolsets=[tools]), policies={"pay": policy})])


def read_by_the_model(script: Script, request: int) -> dict[str, tuple[str, str]]:
    """Outcome and text of each answer that is new in a request, by the id of its call."""
    last = script.requests[request][-1]
    assert isinstance(last, ModelRequest)
    parts = [part for part in last.parts if isinstance(part, ToolReturnPart)]
    found = {part.tool_call_id: (part.outcome, part.model_response_str(wrap_if_error=False)) for part in parts}
    assert len(found) == len(parts), "two answers have one id"
    return found


async def test_case_b1_a_plain_and_a_gated_call_of_one_id_are_two_calls(client: Client, cache: int) -> None:
    ran: list[Any] = []
    same: list[Any] = [
        ToolCallPart("look", {"n": 1}, tool_call_id="dup"),
        ToolCallPart("refund", {"n": 2}, tool_call_id="dup"),
    ]
    script = Script(same, "done")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        assert row["tool"] == "refund"
        await until(lambda: ran == [("look", 1)])
        await update(handle, "deny", {"call": row["call"], "reason": "no"})
        await handle.result()
    assert ran == [("look", 1)]
    assert sorted(read_by_the_model(script, 1).values()) == [("denied", "no"), ("success", "saw 1")]
    assert len(script.requests) == 2


async def test_case_b2_an_approved_tool_that_fails_after_its_effect_isnt_run_again(client: Client, cache: int) -> None:
    ran: list[Attempt] = []
    script = Script({"pay": {"cents": 5}}, "I see.")
    async with working(client, bank(script, ran, ToolPolicy(approval=Approval())), cache=cache) as runs:
        handle = await runs.start("bank", "go")
        (row,) = await pending(handle, 1)
        await update(handle, "approve", {"call": row["call"], "by": "ann"})
        result = await handle.result()
        assert await activities(handle) == ["model_request", "tool:pay", "model_request"]
        assert await attempts(handle) == [1, 1, 1]
    assert [attempt for attempt, _ in ran] == [1]
    assert read_by_the_model(script, 1) == {"c0.0": ("failed", "The tool failed with ConnectionError.")}
    assert [(one["event"], one.get("outcome")) for one in result["audit"]][1:] == [
        ("approved", None),
        ("ran", "failed"),
    ]


async def test_case_b2_with_retries_one_decision_and_one_key_serve_both_attempts(client: Client, cache: int) -> None:
    ran: list[Attempt] = []
    script = Script({"pay": {"cents": 5}}, "done")
    policy = ToolPolicy(effect="idempotent", attempts=2, backoff=0.05, approval=Approval())
    async with working(client, bank(script, ran, policy), cache=cache) as runs:
        handle = await runs.start("bank", "go")
        (row,) = await pending(handle, 1)
        await update(handle, "approve", {"call": row["call"], "by": "ann"})
        result = await handle.result()
        assert await activities(handle) == ["model_request", "tool:pay", "model_request"]
        assert await attempts(handle) == [1, 2, 1]
        assert await answers(handle) == {"c0.0": ("success", "paid 5")}
    assert [attempt for attempt, _ in ran] == [1, 2]
    assert len({key for _, key in ran}) == 1
    assert [one["event"] for one in result["audit"]] == ["asked", "approved", "ran"]


async def test_case_b3_a_run_that_has_ended_takes_no_decision(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        run = PerdureClient(client).run(handle.id)
        await run.approve(row["call"], by="ann")
        await run.result()
        with pytest.raises(RunClosed, match="has ended"):
            await run.approve(row["call"], by="ann")
        with pytest.raises(RunClosed, match="has ended"):
            await run.deny(row["call"], by="bob")
        assert [one["event"] for one in await run.audit()] == ["asked", "approved", "ran"]
    assert ran == [("refund", 1)]


async def test_case_c1_the_denial_of_the_only_call_goes_back_to_the_model(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"delete": {"n": 1}}, "Then I won't.")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        await update(handle, "deny", {"call": row["call"], "by": "ann", "reason": "it is needed"})
        result = await handle.result()
    assert result["output"] == "Then I won't."
    assert read_by_the_model(script, 1) == {"c0.0": ("denied", "it is needed")}
    assert not ran
    assert len(script.requests) == 2
