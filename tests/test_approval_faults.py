"""Faults of approvals that the property test found, or that were found while it was written: one small test each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, FunctionToolset, RunContext
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus

from perdure import App, Approval, DurableAgent, ToolPolicy
from tests.deciding import pending, refused, update
from tests.harness import Handle, failure_of, until, working
from tests.scripts import Script
from tests.shop import shop

GATED = ToolPolicy(approval=Approval())


def app_of(script: Script, tools: dict[str, Callable[..., Any]], policies: dict[str, ToolPolicy], **more: Any) -> App:
    """Tools by name. It sets no search attributes: a server that has none registered is the usual case."""
    toolset = FunctionToolset[None](id="shop")
    for name, tool in tools.items():
        toolset.tool(name=name)(tool)
    make: Any = Agent
    agent = make(script.model, name="shop", toolsets=[toolset])
    return App(agents=[DurableAgent(agent, policies=policies, **more)], search_attributes=[])


def seen(handle: Handle, query: str, holds: Callable[[Any], bool]) -> Callable[[], Awaitable[bool]]:
    """A condition for `until`: what a query answers."""

    async def condition() -> bool:
        return holds(await handle.query(query))

    return condition


async def test_an_update_finds_what_waits_also_on_a_new_worker(client: Client) -> None:
    """Temporal replays a workflow task without commands together with the next one, and hands over updates first."""
    goes_on = asyncio.Event()

    async def asks(ctx: RunContext[None], n: int) -> str:
        if not ctx.tool_call_approved:
            await goes_on.wait()
            raise ApprovalRequired
        return "asked"

    async def look(ctx: RunContext[None], n: int) -> str:
        return "seen"

    script = Script({"look": {"n": 1}, "asks": {"n": 2}}, "done")
    app = app_of(script, {"look": look, "asks": asks}, {})
    async with working(client, app, check=False) as runs:
        handle = await runs.start("shop", "go")
        await until(seen(handle, "status", lambda view: [call["tool"] for call in view["open_calls"]] == ["asks"]))
        goes_on.set()
        (row,) = await pending(handle, 1)
    async with working(client, app, task_queue=runs.task_queue) as again:
        again.handles.append(handle)
        assert (await update(handle, "approve", {"call": row["call"]}))["outcome"] == "approved"
        assert (await handle.result())["output"] == "done"


async def test_what_has_expired_stays_so_also_on_a_new_worker(client: Client) -> None:
    """As above. What was approved then ran, and the next replay was nondeterministic: the run hung for ever."""
    ran: list[str] = []

    async def tool(ctx: RunContext[None], n: int) -> str:
        ran.append(ctx.tool_name or "")
        return "done"

    calls: list[Any] = [ToolCallPart(name, {"n": 1}) for name in ("look", "brief", "gated")]
    brief = ToolPolicy(approval=Approval(expires_after=timedelta(seconds=1)))
    script = Script(calls, "done")
    app = app_of(script, {"look": tool, "brief": tool, "gated": tool}, {"brief": brief, "gated": GATED})
    async with working(client, app, check=False) as runs:
        handle = await runs.start("shop", "go")
        one, two = await pending(handle, 2)
        await until(seen(handle, "audit", lambda audit: [row["event"] for row in audit][-1] == "expired"))
    async with working(client, app, task_queue=runs.task_queue) as again:
        again.handles.append(handle)
        assert "already decided: expired" in await refused(handle, "approve", {"call": one["call"]})
        await update(handle, "deny", {"call": two["call"]})
        await handle.result()
    assert ran == ["look"]


async def test_an_edit_that_is_being_checked_is_answered_when_the_run_ends(client: Client) -> None:
    """In production the sender is told AcceptedUpdateCompletedWorkflow; here the SDK's warning of it is an error."""
    began, goes_on = asyncio.Event(), asyncio.Event()

    async def slow(ctx: RunContext[None], n: int) -> None:
        if n == 7:
            began.set()
            await goes_on.wait()

    tools = FunctionToolset[None](id="shop")

    @tools.tool(args_validator=slow)
    async def refund(ctx: RunContext[None], n: int) -> str:
        raise AssertionError("never approved")

    policies = {"refund": ToolPolicy(approval=Approval(allow_edit=True))}
    make: Any = Agent
    agent = make(Script({"refund": {"n": 1}}).model, name="shop", toolsets=[tools])
    async with working(client, App(agents=[DurableAgent(agent, policies=policies)])) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        answer = asyncio.create_task(refused(handle, "approve", {"call": row["call"], "args": {"n": 7}}))
        await began.wait()
        await handle.cancel()
        await until(lambda: cancel_was_handled(handle))
        goes_on.set()
        assert "NotPending: the run is ending" in await asyncio.wait_for(answer, 10)
        await until(lambda: is_cancelled(handle))


async def cancel_was_handled(handle: Handle) -> bool:
    """Whether a workflow task has ended after the request, well or not."""
    kinds = [event.event_type for event in (await handle.fetch_history()).events]
    after = kinds[kinds.index(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED) :]
    return bool({EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED} & {*after})


async def is_cancelled(handle: Handle) -> bool:
    return (await handle.describe()).status is WorkflowExecutionStatus.CANCELED


async def test_no_call_begins_after_one_that_ended_the_run(client: Client) -> None:
    """`_run_call` looks at the errors of others for plain calls only."""

    def tool(n: int) -> str:
        return "ran"

    tools = FunctionToolset[None](id="shop")
    tools.tool_plain(name="brief", sequential=True)(tool)
    tools.tool_plain(name="gated")(tool)
    brief = ToolPolicy(approval=Approval(expires_after=timedelta(seconds=0.2), on_expiry="fail"))
    script = Script({"brief": {"n": 1}, "gated": {"n": 2}})
    make: Any = Agent
    agent = make(script.model, name="shop", toolsets=[tools])
    app = App(agents=[DurableAgent(agent, policies={"brief": brief, "gated": GATED})])
    async with working(client, app) as runs:
        handle = await runs.start("shop", "go")
        await until(seen(handle, "audit", lambda audit: any(row["event"] == "expired" for row in audit)))
        assert await handle.query("pending") == []
        assert (await failure_of(handle)).type == "ApprovalExpired"


@pytest.mark.parametrize("quorum", [1, 2])
async def test_who_edits_has_not_approved_but_may_deny(client: Client, quorum: int) -> None:
    """`Approval.forbid_self`: whoever edited the arguments may not approve them as well."""
    ran: list[Any] = []
    approval = Approval(allow_edit=True, forbid_self=True, quorum=quorum)
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), ran, approval)) as runs:
        handle = await runs.start("shop", "go", by="eve")
        (row,) = await pending(handle, 1)
        answer = await update(handle, "approve", {"call": row["call"], "by": "ann", "args": {"n": 7}})
        assert (answer["outcome"], answer["needed"]) == ("edited", quorum)
        assert (await update(handle, "deny", {"call": answer["call"], "by": "ann"}))["outcome"] == "denied"
        await handle.result()
    assert ran == []


async def test_approved_calls_keep_to_the_limit_of_parallel_calls(client: Client) -> None:
    """`DurableAgent.max_parallel_calls`: tool calls of a run that are open at once."""
    at_once = [0]
    most: list[int] = []

    async def gated(ctx: RunContext[None], n: int) -> str:
        at_once[0] += 1
        most.append(at_once[0])
        await asyncio.sleep(0.3)
        at_once[0] -= 1
        return "ran"

    calls: list[Any] = [ToolCallPart("gated", {"n": n}) for n in range(5)]
    app = app_of(Script(calls, "done"), {"gated": gated}, {"gated": GATED}, max_parallel_calls=2)
    async with working(client, app) as runs:
        handle = await runs.start("shop", "go")
        rows = await pending(handle, 5)
        await asyncio.gather(*(update(handle, "approve", {"call": row["call"]}) for row in rows))
        await handle.result()
    assert max(most) == 2


async def test_an_external_tool_may_be_called_with_an_argument_that_its_schema_does_not_name(client: Client) -> None:
    """A schema without `properties`: the run ended with AttributeError."""
    outside = ExternalToolset[None]([ToolDefinition(name="outside")], id="out")
    make: Any = Agent
    agent = make(Script({"outside": {"n": 1}}, "done").model, name="out", toolsets=[outside])
    async with working(client, App(agents=[agent])) as runs:
        handle = await runs.start("out", "go")
        (row,) = await pending(handle, 1)
        assert row["args"] == {"n": 1}
        await update(handle, "complete", {"call": row["call"], "result": 2})
        assert (await handle.result())["output"] == "done"
