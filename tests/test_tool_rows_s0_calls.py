"""Rows S0 of the table in docs/tools.md about one call: decisions, deploys, retries, validators."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, ModelRetry, RunContext, Tool
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from perdure import App, Approval, DurableAgent, ToolPolicy, current_call
from tests.deciding import answers, pending, refused, update
from tests.harness import activities, working
from tests.reading import events
from tests.scripts import Script
from tests.shop import shop


async def test_s0_26_a_decision_that_is_refused_leaves_nothing_in_history(client: Client) -> None:
    """Also S0-28: unknown, of the wrong kind, cut short, undecided ones."""
    ran: list[Any] = []
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), ran)) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        for verb, argument in (
            ("approve", {"call": "9.9-0000"}),
            ("complete", {"call": row["call"], "result": 1}),
            ("deny", {"call": row["call"].split("-")[0]}),
        ):
            await refused(handle, verb, argument)
        accepted = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
        assert accepted not in await events(handle)
        assert len(await pending(handle, 1)) == 1
        await update(handle, "approve", {"call": row["call"]})
        await handle.result()
        assert (await events(handle)).count(accepted) == 1
    assert ran == [("refund", 1)]


def kept(n: int) -> str:
    """As it was."""
    return f"kept {n}"


def deployed(new: bool, script: Script, ran: list[str]) -> App:
    """An agent before a deploy and after it: one tool is gone, one takes more, one is stricter."""

    def gone(n: int) -> str:
        raise AssertionError("it never runs")

    def wider(n: int, more: str = "by default") -> str:
        ran.append(f"{n} {more}")
        return more

    def narrower(n: int, more: str) -> str:
        raise AssertionError("it never runs")

    tools = [kept, Tool(wider, name="wider"), Tool(narrower, name="narrower")] if new else [kept, gone]
    old = [] if new else [Tool(kept, name="wider"), Tool(kept, name="narrower")]
    policies = {"*": ToolPolicy(approval=Approval())}
    return App(agents=[DurableAgent(Agent(script.model, name="deployed", tools=[*tools, *old]), policies=policies)])


async def test_s0_29_calls_planned_before_a_deploy_meet_the_tools_after_it(client: Client, cache: int) -> None:
    """History holds no schema, so it replays; what was planned is checked against the function that is there."""
    ran: list[str] = []
    script = Script({name: {"n": 1} for name in ("kept", "gone", "wider", "narrower")}, "done")
    async with working(client, deployed(False, script, ran), cache=cache, check=False) as runs:
        handle = await runs.start("deployed", "go")
        rows = await pending(handle, 4)
    async with working(client, deployed(True, script, ran), cache=cache, task_queue=runs.task_queue) as again:
        again.handles.append(handle)
        for row in rows:
            await update(handle, "approve", {"call": row["call"]})
        assert (await handle.result())["output"] == "done"
        found = await answers(handle)
    assert found["c0.0"] == ("success", "kept 1")
    assert found["c0.1"][0] == "failed"
    assert "is gone" in found["c0.1"][1]
    assert found["c0.2"] == ("success", "by default")
    assert found["c0.3"][0] == "retried"
    assert '"loc":["more"],"msg":"Field required"' in found["c0.3"][1]
    assert ran == ["1 by default"]


async def test_s0_31_attempts_of_temporal_use_no_retry_of_the_model(client: Client, cache: int) -> None:
    """Also S1-12: `ctx.retry` counts what the model was asked, `current_call().attempt` what Temporal did."""
    seen: list[tuple[int, int, int]] = []

    def flaky(ctx: RunContext[Any]) -> str:
        seen.append((ctx.retry, ctx.max_retries, current_call().attempt))
        if seen[-1] == (0, 1, 1):
            raise ConnectionError("lost")
        if ctx.retry == 0:
            raise ModelRetry("once more")
        return "ok"

    script = Script({"flaky": {}}, {"flaky": {}}, "done")
    policy = ToolPolicy(effect="safe", attempts=3, backoff=timedelta(milliseconds=50))
    agent = Agent(script.model, name="flaky", tools=[Tool(flaky, max_retries=1)])
    app = App(agents=[DurableAgent(agent, policies={"flaky": policy})])
    async with working(client, app, cache=cache) as runs:
        assert (await runs.run("flaky", "go"))["output"] == "done"
    assert seen == [(0, 1, 1), (0, 1, 2), (1, 1, 1)]


@pytest.mark.parametrize("allowed", [True, False])
async def test_s0_35_a_validator_that_asks_for_approval_holds_the_call(client: Client, allowed: bool) -> None:
    ran: list[int] = []

    def check(ctx: RunContext[Any], n: int) -> None:
        if n > 10 and not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"why": "large"})

    def pay(n: int) -> str:
        """Pay."""
        ran.append(n)
        return "paid"

    script = Script({"pay": {"n": 5}}, {"pay": {"n": 50}}, "done")
    agent = Agent(script.model, name="pay", tools=[Tool(pay, args_validator=check)])
    async with working(client, App(agents=[agent])) as runs:
        handle = await runs.start("pay", "go")
        (row,) = await pending(handle, 1)
        assert (row["args"], row["metadata"], ran) == ({"n": 50}, {"why": "large"}, [5])
        assert await activities(handle) == ["model_request", "tool:pay", "model_request"]
        await update(handle, "approve" if allowed else "deny", {"call": row["call"]})
        assert (await handle.result())["output"] == "done"
    assert ran == ([5, 50] if allowed else [5])
