"""Rows S2 of the table in docs/tools.md about calls that don't end, and calls that end the run."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from perdure import App, DurableAgent, ToolPolicy, current_call
from tests.deciding import answers
from tests.harness import Handle, activities, attempts, failure_of, until, working
from tests.scripts import Script

SHORT = 4
"""Seconds in which a busy machine begins a call."""


async def hang() -> str:
    """Never ends by itself."""
    await asyncio.Event().wait()
    return "never"


async def test_s2_21_a_call_that_is_too_slow_is_reported_or_repeated(client: Client, cache: int) -> None:
    """`ToolPolicy(timeout=…)`: an unsafe call is reported, others are repeated and then failed."""

    async def slow_at_first() -> str:
        return await hang() if current_call().attempt == 1 else "at last"

    tools = FunctionToolset[Any](id="slow")
    for name, function in (("reported", hang), ("repeated", slow_at_first), ("given_up", hang)):
        tools.add_function(function, name=name)
    again = ToolPolicy(effect="safe", timeout=SHORT, attempts=2, backoff=0.05)
    policies = {"reported": ToolPolicy(timeout=SHORT), "*": again}
    script = Script({"reported": {}, "repeated": {}, "given_up": {}}, "done")
    agent = Agent(script.model, name="slow", toolsets=[tools])
    async with working(client, App(agents=[DurableAgent(agent, policies=policies)]), cache=cache) as runs:
        handle = await runs.start("slow", "go")
        assert (await handle.result())["output"] == "done"
        reported, repeated, given_up = (await answers(handle)).values()
        assert sorted(await attempts(handle)) == [1, 1, 1, 2, 2]
    assert "did not end within 4 s" in reported[1]
    assert "may or may not have run" in reported[1]
    assert repeated == ("success", "at last")
    assert given_up[0] == "failed"
    assert given_up[1].endswith("did not end within 4 s.")


async def test_s2_21_a_call_that_is_too_slow_may_end_the_run(client: Client, cache: int) -> None:
    """`on_timeout="fail"`. Its sibling is told nothing of it: it ends, and its result is kept."""
    policies = {"strict": ToolPolicy(timeout=SHORT, on_timeout="fail")}

    def quick() -> str:
        return "quick"

    tools = FunctionToolset[Any]([quick], id="slow")
    tools.add_function(hang, name="strict")
    agent = Agent(Script({"strict": {}, "quick": {}}).model, name="strict", toolsets=[tools])
    async with working(client, App(agents=[DurableAgent(agent, policies=policies)]), cache=cache) as runs:
        handle = await runs.start("strict", "go")
        failure = await failure_of(handle)
        strict, quickly = (await answers(handle)).values()
    assert (failure.type, failure.non_retryable) == ("ToolTimeout", True)
    assert failure.message == "tool 'strict' did not end within 4 s"
    assert "may or may not have run" in strict[1]
    assert quickly == ("success", "quick")


async def has_ended(handle: Handle, name: str) -> bool:
    """Whether history has the end of an activity."""
    events = (await handle.fetch_history()).events
    begun = {event.event_id: event.activity_task_scheduled_event_attributes.activity_type.name for event in events}
    ends = [event.activity_task_completed_event_attributes.scheduled_event_id for event in events]
    return name in [begun[id] for id in ends if id]


async def test_s2_24_a_call_that_ends_the_run_lets_what_runs_end_and_begins_nothing(client: Client, cache: int) -> None:
    """Siblings aren't cancelled, since an effect may be done halfway; those behind a barrier or the cap never begin."""
    stopped = asyncio.Event()
    ran: list[str] = []

    def stop() -> str:
        stopped.set()
        raise ApplicationError("declined", type="Card", non_retryable=True)

    async def long() -> str:
        """Ends when history has the end of `stop`."""
        await stopped.wait()
        handle = client.get_workflow_handle(current_call().workflow_id)
        await until(lambda: has_ended(handle, "tool:stop"), every=0.1)
        ran.append("long")
        return "ended"

    def behind() -> str:
        raise AssertionError("it never begins")

    tools = FunctionToolset[Any]([stop, long], id="fatal")
    tools.add_function(behind, sequential=True)
    turn: Any = [ToolCallPart(name) for name in ("stop", "long", "behind")]
    agent = Agent(Script(turn).model, name="fatal", toolsets=[tools])
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        handle = await runs.start("fatal", "go")
        failure = await failure_of(handle)
        found = list((await answers(handle)).values())
        assert sorted(await activities(handle)) == ["model_request", "tool:long", "tool:stop"]
    assert (failure.type, failure.message) == ("Card", "declined")
    assert [outcome for outcome, _ in found] == ["failed", "success", "interrupted"]
    assert "never began" in found[2][1]
    assert ran == ["long"]
