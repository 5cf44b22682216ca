"""Runs that others started, while the one above continues as new, is reset, or served elsewhere."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from pydantic import BaseModel
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus

from perdure import App
from perdure.toolsets.agent import agent_tool
from tests.deciding import answers, pending, update
from tests.family import boss, children, firm, staff
from tests.harness import Handle, check_run, replay, until, working
from tests.resets import reset
from tests.scripts import Script

STARTS = "start_child_workflow_execution_initiated_event_attributes"


async def task_that_starts_a_child(handle: Handle) -> int:
    """The event with which the workflow task ended that started a child."""
    found = [getattr(event, STARTS) for event in (await handle.fetch_history()).events if event.HasField(STARTS)]
    return found[0].workflow_task_completed_event_id


async def test_a_reset_run_starts_the_run_below_anew(client: Client, cache: int) -> None:
    ran: list[Any] = []
    app = firm(Script({"ask_clerk": {"prompt": "x"}}, "done"), Script({"refund": {"n": 1}}, "refunded"), ran)
    async with working(client, app, cache=cache, check=False) as runs:
        handle = await runs.start("boss", "go")
        await pending(handle, 1)
        (child,) = await children(client, handle)
        before = (await child.describe()).run_id
        again = await reset(client, handle, await task_that_starts_a_child(handle))

        async def is_new() -> bool:
            described = await child.describe()
            return described.run_id != before and described.status == WorkflowExecutionStatus.RUNNING

        await until(is_new, every=0.05)
        (row,) = await pending(again, 1)
        *_, below = await children(client, again)
        assert below.id == child.id
        await update(below, "approve", {"call": row["call"], "by": "ann"})
        assert (await again.result())["output"] == "done"
        await replay(await again.fetch_history())
        await check_run(below)
    assert ran == [("refund", 1)]


async def test_after_a_reset_behind_its_start_the_run_below_is_waited_for(client: Client, cache: int) -> None:
    ran: list[Any] = []
    app = firm(Script({"ask_clerk": {"prompt": "x"}}, "done"), Script({"refund": {"n": 1}}, "refunded"), ran)
    async with working(client, app, cache=cache, check=False) as runs:
        handle = await runs.start("boss", "go")
        (row,) = await pending(handle, 1)
        completed = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
        tasks = [e.event_id for e in (await handle.fetch_history()).events if e.event_type == completed]
        again = await reset(client, handle, tasks[-1])
        assert [one["call"] for one in await pending(again, 1)] == [row["call"]]
        (child,) = await children(client, again)
        await update(child, "approve", {"call": row["call"], "by": "ann"})
        assert (await again.result())["output"] == "done"
        await replay(await again.fetch_history())
    assert ran == [("refund", 1)]


async def test_a_run_that_has_ended_below_is_run_again_after_a_reset(client: Client) -> None:
    ran: list[Any] = []
    app = firm(Script({"ask_clerk": {"prompt": "x"}}, "done"), Script({"look": {"n": 1}}, "seen"), ran)
    async with working(client, app, check=False) as runs:
        handle = await runs.start("boss", "go")
        await handle.result()
        again = await reset(client, handle, await task_that_starts_a_child(handle))
        assert (await again.result())["usage"]["requests"] == 4
        await replay(await again.fetch_history())
    assert ran == [("look", 1)] * 2


async def test_runs_below_while_everybody_continues_as_new(rolling_client: Client, cache: int) -> None:
    ran: list[Any] = []
    turns: list[Any] = []
    for number in range(4):
        turns += [{"ask_clerk": {"prompt": str(number)}}, f"answer {number}"]
    clerk = Script({"look": {"n": 1}}, {"look": {"n": 2}}, {"refund": {"n": 3}}, {"look": {"n": 4}}, "seen")
    async with working(rolling_client, firm(Script(*turns), clerk, ran), cache=cache) as runs:
        handle = await runs.start("boss", "go", session={})
        for number in range(4):
            (row,) = await pending(handle, 1)
            child = rolling_client.get_workflow_handle(row["workflow_id"])
            await update(child, "approve", {"call": row["call"], "by": "ann"})
            await child.result()

            async def over(number: int = number) -> bool:
                return (await handle.query("turn", {"turn": number + 1})).get("state") == "done"

            await until(over, every=0.05)
            if number < 3:
                await update(handle, "send", {"content": "more", "id": f"m{number}"})
            await check_run(child)
        assert await handle.query("pending") == []
        await update(handle, "close", {})
        result = await handle.result()
        assert (result["usage"]["requests"], result["usage"]["tool_calls"]) == (28, 20)
        described = await handle.describe()
        assert described.run_id != handle.first_execution_run_id
    assert len(ran) == 16


class Search(BaseModel):
    question: str
    depth: int = 1


class Params(BaseModel):
    depth: int
    customer: str
    lang: str


class Desk(BaseModel):
    customer: str


async def test_input_params_and_queue(client: Client, cache: int) -> None:
    ran: list[Any] = []
    clerk = Script("found")
    elsewhere = App(agents=[staff(clerk, ran, params_type=Params, models={"small": clerk.model})])
    queue = f"q-{uuid.uuid4().hex[:12]}"
    tool = agent_tool(
        "clerk",
        name="search",
        input=Search,
        prompt="question",
        params={"lang": "en"},
        inherit=["customer"],
        model="small",
        task_queue=queue,
    )
    above = boss(Script({"search": {"question": "why?", "depth": 2}}, "done"), tool, params_type=Desk)
    async with (
        working(client, elsewhere, task_queue=queue, cache=cache),
        working(client, App(agents=[above]), cache=cache) as runs,
    ):
        handle = await runs.start("boss", "go", params={"customer": "ann"}, by="eve", metadata={"ticket": 7})
        assert (await handle.result())["output"] == "done"
        assert await answers(handle) == {"c0.0": ("success", "found")}
        (child,) = await children(client, handle)
        page = await child.query("transcript")
        start, user = page["entries"][:2]
        assert start["params"] == {"depth": 2, "lang": "en", "customer": "ann"}
        assert start["metadata"] == {"ticket": 7}
        assert user["content"] == "why?"
        assert (await child.describe()).task_queue == queue


@pytest.mark.parametrize(("params", "said"), [({"customer": 1}, "params.customer: Input should be a valid string")])
async def test_params_that_the_agent_refuses(client: Client, params: Any, said: str) -> None:
    clerk = staff(Script(), [], params_type=Desk)
    tool = agent_tool("clerk", inherit=["customer"])

    class Loose(BaseModel):
        customer: Any

    app = App(agents=[boss(Script({"ask_clerk": {"prompt": "x"}}, "I see."), tool, params_type=Loose), clerk])
    async with working(client, app) as runs:
        handle = await runs.start("boss", "go", params=params)
        assert (await handle.result())["output"] == "I see."
        ((outcome, text),) = (await answers(handle)).values()
        assert (outcome, said in text) == ("failed", True)
