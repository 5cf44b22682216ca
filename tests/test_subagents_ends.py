"""How a run that another one started may end, and what that is for the one above."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError

from perdure import App, DurableAgent, Limits
from perdure.toolsets.agent import agent_tool
from tests.command import perdure
from tests.deciding import answers, cancelled, pending, update
from tests.family import boss, children, firm, staff
from tests.harness import check_run, failure_of, until, working
from tests.scripts import Script


async def closed(handle: Any) -> WorkflowExecutionStatus | None:
    """How a run has ended, once it has."""
    found: list[WorkflowExecutionStatus | None] = []

    async def has_ended() -> bool:
        found[:] = [(await handle.describe()).status]
        return found[0] != WorkflowExecutionStatus.RUNNING

    await until(has_ended, every=0.05)
    return found[0]


async def test_a_failure_is_an_outcome_and_its_usage_counts(client: Client, cache: int) -> None:
    def card() -> str:
        """Fails."""
        raise ApplicationError("secret text", {"n": 1}, type="Card", non_retryable=True)

    clerk = DurableAgent(Agent(Script({"card": {}}).model, name="clerk", tools=[card]))
    app = App(agents=[boss(Script({"ask_clerk": {"prompt": "pay"}}, "I see.")), clerk])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("boss", "go")
        result = await handle.result()
        assert await answers(handle) == {"c0.0": ("failed", "The agent 'clerk' failed: Card.")}
        assert result["usage"]["requests"] == 3
        (child,) = await children(client, handle)
        assert await closed(child) == WorkflowExecutionStatus.FAILED
        await check_run(child)


async def test_a_run_below_that_somebody_cancels_is_cancelled_for_the_one_above(client: Client, cache: int) -> None:
    ran: list[Any] = []
    app = firm(Script({"ask_clerk": {"prompt": "x"}}, "I see."), Script({"refund": {"n": 1}}), ran)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("boss", "go")
        await pending(handle, 1)
        (child,) = await children(client, handle)
        await cancelled(child)
        result = await handle.result()
        assert await answers(handle) == {"c0.0": ("interrupted", "The run of 'clerk' was cancelled.")}
        assert result["usage"]["requests"] == 3
        await check_run(child)
    assert not ran


async def test_one_that_is_terminated_is_unknown(client: Client) -> None:
    app = firm(Script({"ask_clerk": {"prompt": "x"}}, "I see."), Script({"refund": {"n": 1}}), [])
    async with working(client, app) as runs:
        handle = await runs.start("boss", "go")
        await pending(handle, 1)
        (child,) = await children(client, handle)
        await child.terminate()
        result = await handle.result()
        ((outcome, text),) = (await answers(handle)).values()
        assert (outcome, "may or may not have run" in text) == ("interrupted", True)
        assert result["usage"]["requests"] == 3


async def test_a_cancel_goes_down_and_is_waited_for(client: Client, cache: int) -> None:
    ran: list[Any] = []
    asks: list[Any] = [ToolCallPart("ask_clerk", {"prompt": "x"}), ToolCallPart("ask_clerk", {"prompt": "y"})]
    app = firm(Script(asks), Script({"refund": {"n": 1}}), ran)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("boss", "go")
        await pending(handle, 2)
        below = await children(client, handle)
        await cancelled(handle)
        for child in below:
            assert (await child.describe()).status == WorkflowExecutionStatus.CANCELED
            await check_run(child)
        assert (await handle.query("status"))["usage"]["requests"] == 3
        assert [outcome for outcome, _ in (await answers(handle)).values()] == ["interrupted", "interrupted"]
    assert not ran


async def test_an_interrupt_goes_down_and_the_session_goes_on(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"ask_clerk": {"prompt": "x"}}, "Go on.", {"ask_clerk": {"prompt": "x"}}, "Done.")
    app = firm(script, Script({"refund": {"n": 1}}, "refunded"), ran)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("boss", "go", session={})
        await pending(handle, 1)
        await update(handle, "interrupt", {"by": "eve"})
        (child,) = await children(client, handle)
        assert await closed(child) == WorkflowExecutionStatus.CANCELED
        await update(handle, "send", {"content": "and now?", "id": "m1"})
        await update(handle, "send", {"content": "again", "id": "m2"})
        (row,) = await pending(handle, 1)
        _, second = await children(client, handle)
        await update(second, "approve", {"call": row["call"], "by": "ann"})
        await update(handle, "close", {})
        result = await handle.result()
        assert (result["output"], result["usage"]["requests"]) == ("Done.", 7)
    assert ran == [("refund", 1)]


async def test_a_run_whose_parent_is_terminated_ends_by_itself(client: Client) -> None:
    app = firm(Script({"ask_clerk": {"prompt": "x"}}), Script({"refund": {"n": 1}}), [])
    async with working(client, app, check=False) as runs:  # what is terminated has no say in its calls
        handle = await runs.start("boss", "go")
        await pending(handle, 1)
        (child,) = await children(client, handle)
        await handle.terminate()
        assert await closed(child) == WorkflowExecutionStatus.CANCELED
        await check_run(child)


async def test_a_deadline_goes_down_and_what_was_used_counts(client: Client, cache: int) -> None:
    limits = Limits(deadline=timedelta(seconds=15))
    app = firm(Script({"ask_clerk": {"prompt": "x"}}), Script({"refund": {"n": 1}}), [], limits=limits)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("boss", "go")
        await pending(handle, 1)
        assert (await failure_of(handle)).type == "LimitExceeded"
        (child,) = await children(client, handle)
        assert await closed(child) in (WorkflowExecutionStatus.CANCELED, WorkflowExecutionStatus.FAILED)
        assert (await handle.query("status"))["usage"]["requests"] == 2
        await check_run(child)


async def test_what_a_run_is_given_has_to_fit_beside_the_other_calls(client: Client) -> None:
    asks: list[Any] = [ToolCallPart("ask_clerk", {"prompt": "x"}) for _ in range(4)]
    app = firm(Script(asks, "done"), Script("seen"), [])
    async with working(client, app) as runs:
        handle = await runs.start("boss", "go", metadata={"text": "x" * 200_000})
        await handle.result()
        given = await answers(handle)
        assert {outcome for outcome, _ in given.values()} == {"failed"}
        assert "beside 3 other calls they may have 187500" in given["c0.0"][1]
        again = await runs.start("boss", "go", metadata={"text": "x" * 180_000})
        await again.result()
        assert {outcome for outcome, _ in (await answers(again)).values()} == {"success"}


@pytest.mark.parametrize(("depth", "deep"), [(3, 3), (1, 1)])
async def test_an_agent_may_call_itself_so_deep_and_no_deeper(client: Client, depth: int, deep: int) -> None:
    script = Script({"ask_me": {"prompt": "once more"}}, "up")
    agent = Agent(script.model, name="me", tools=[agent_tool("me", max_depth=depth)])
    async with working(client, App(agents=[agent])) as runs:
        handle = await runs.start("me", "go")
        result = await handle.result()
        assert (result["output"], result["usage"]["requests"]) == ("up", 2 * (deep + 1))
        last: Any = handle
        for _ in range(deep):
            assert await answers(last) == {"c0.0": ("success", "up")}
            (last,) = await children(client, last)
        ((outcome, text),) = (await answers(last)).values()
        assert (outcome, text) == (
            "failed",
            f"The call was not made: agents may call each other {depth} deep, and no deeper.",
        )


async def test_what_waits_two_runs_below_is_shown_at_the_top(client: Client, cache: int) -> None:
    ran: list[Any] = []
    middle = Agent(Script({"ask_clerk": {"prompt": "x"}}, "mid").model, name="middle", tools=[agent_tool("clerk")])
    app = App(
        agents=[
            boss(Script({"ask_middle": {"prompt": "x"}}, "top"), agent_tool("middle")),
            middle,
            staff(Script({"refund": {"n": 1}}, "low"), ran),
        ]
    )
    address = client.service_client.config.target_host
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("boss", "go")
        (row,) = await pending(handle, 1)
        (child,) = await children(client, handle)
        (grandchild,) = await children(client, child)
        assert row["workflow_id"] == grandchild.id
        listed = (await perdure("inbox", "--json", address=address)).out
        assert listed.count(row["call"]) == 1
        assert f'"run": "{grandchild.id}"' in listed
        shown = (await perdure("show", handle.id, address=address)).out
        assert f"perdure approve {grandchild.id} {row['call']}" in shown
        wrong = await perdure("approve", handle.id, row["call"], "--by", "ann", address=address)
        assert (wrong.code, f"waits in run '{grandchild.id}'" in wrong.err) == (1, True)
        right = await perdure("approve", grandchild.id, row["call"], "--by", "ann", address=address)
        assert right.code == 0
        assert (await handle.result())["output"] == "top"
        await asyncio.gather(check_run(child), check_run(grandchild))
    assert ran == [("refund", 1)]
