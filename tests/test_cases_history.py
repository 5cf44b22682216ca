"""Cases F1, G1, G2: the growth of history, nothing process-wide, and order that doesn't depend on timing."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from perdure import App, DurableAgent, Limits, ToolPolicy, current_call
from tests.harness import Handle, activities, messages, until, working
from tests.scripts import Script

STEPS = 60
STEPS_UNCACHED = 30
"""Each workflow task then replays all before it, which takes its time, not bytes."""


async def bytes_by_step(handle: Handle) -> list[int]:
    """The size of a run's history at the end of each tool call."""
    total, sizes, tools = 0, list[int](), set[int]()
    for event in (await handle.fetch_history()).events:
        total += event.ByteSize()
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            if event.activity_task_scheduled_event_attributes.activity_type.name.startswith("tool:"):
                tools.add(event.event_id)
        elif event.activity_task_completed_event_attributes.scheduled_event_id in tools:
            sizes.append(total)
    return sizes


async def test_case_f1_history_grows_with_the_steps_not_with_the_conversation(client: Client, cache: int) -> None:
    def page(number: int) -> str:
        return f"{number}:" + "x" * 5000

    steps = STEPS if cache else STEPS_UNCACHED
    script = Script(*[{"page": {"number": number}} for number in range(steps)], "read")
    agent = DurableAgent(Agent(script.model, name="reader", tools=[page]), limits=Limits(turn_requests=None))
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        handle = await runs.start("reader", "read it all", limits={"requests": steps + 1})
        assert (await handle.result())["output"] == "read"
        sizes = await bytes_by_step(handle)
    assert len(sizes) == steps
    first, second, third = (sizes[steps * n // 3 - 1] for n in (1, 2, 3))
    second, third = second - first, third - second
    assert third < 1.1 * second < 1.25 * first
    assert sizes[-1] < steps * 20_000, "a result is in history twice: as it is answered and as the next request gets it"
    numbers = [part.content for part in script.requests[-1][-1].parts if isinstance(part, ToolReturnPart)]
    assert numbers == [page(steps - 1)]
    assert len(script.requests) == steps + 1


async def test_case_f1_a_large_prompt_is_not_written_again_with_each_step(client: Client) -> None:
    def note(number: int) -> str:
        return f"noted {number}"

    script = Script(*[{"note": {"number": number}} for number in range(10)], "done")
    async with working(client, App(agents=[Agent(script.model, name="notes", tools=[note])])) as runs:
        handle = await runs.start("notes", "y" * 400_000)
        await handle.result()
        sizes = await bytes_by_step(handle)
    assert max(after - before for before, after in pairwise(sizes)) < 10_000


async def timed_out_tasks(handle: Handle) -> int:
    """How many workflow tasks of a run no worker answered in time."""
    timed_out = EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT
    return sum(event.event_type == timed_out for event in (await handle.fetch_history()).events)


async def test_case_g1_two_runs_on_one_worker_issue_the_same_commands(client: Client, cache: int) -> None:
    listed: list[str] = []

    def ping() -> str:
        return "pong"

    def listing(ctx: RunContext[object]) -> AbstractToolset[object]:
        listed.append("listed")
        return FunctionToolset[object]([ping], id="listed")

    script = Script({"ping": {}}, "done")
    agent = Agent(script.model, name="lists")
    agent.toolset(id="listing")(listing)
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        first, second = await runs.start("lists", "one"), await runs.start("lists", "two")
        assert (await first.result())["output"] == (await second.result())["output"] == "done"
        assert await activities(first) == await activities(second) == ["model_request", "tool:ping", "model_request"]
        assert await timed_out_tasks(first) + await timed_out_tasks(second) == 0, "a timed-out task costs ten seconds"
    assert listed


async def test_case_g1_a_run_survives_a_restart_in_the_middle(client: Client, cache: int) -> None:
    attempts: list[int] = []
    script = Script({"look": {}}, "seen")

    async def look() -> str:
        attempts.append(current_call().attempt)
        if attempts == [1, 1]:
            await asyncio.Event().wait()
        return "a view"

    def app() -> App:
        agent = Agent(script.model, name="looks", tools=[look])
        return App(agents=[DurableAgent(agent, policies={"look": ToolPolicy(effect="safe", backoff=0.05)})])

    async with working(client, app(), cache=cache, check=False) as runs:
        warm = await runs.start("looks", "other run fills whatever a worker caches")
        assert (await warm.result())["output"] == "seen"
        handle = await runs.start("looks", "go")
        await until(lambda: len(attempts) >= 2)
    async with working(client, app(), cache=cache, task_queue=runs.task_queue) as again:
        again.handles += [warm, handle]
        assert (await handle.result())["output"] == "seen"
        assert await activities(handle) == ["model_request", "tool:look", "model_request"]
    assert attempts == [1, 1, 2]


async def test_case_g2_results_are_in_call_order_whatever_order_calls_end_in(client: Client, cache: int) -> None:
    ended: dict[str, list[int]] = {}

    async def wait_for_later(number: int) -> int:
        """Ends after all later calls of its step have ended."""
        mine = ended.setdefault(current_call().workflow_id, [])
        await until(lambda: len(mine) == 4 - number)
        mine.append(number)
        return number

    calls = [ToolCallPart("wait_for_later", {"number": number}) for number in range(5)]
    script = Script(calls, "done")  # pyright: ignore[reportArgumentType]
    app = App(agents=[Agent(script.model, name="order", tools=[wait_for_later])])
    async with working(client, app, cache=cache) as runs:
        for number in range(10):
            handle = await runs.start("order", f"run {number}")
            assert (await handle.result())["output"] == "done"
            answered = [part for part in (await messages(handle))[2].parts if isinstance(part, ToolReturnPart)]
            assert [part.content for part in answered] == [0, 1, 2, 3, 4]
    assert list(ended.values()) == [[4, 3, 2, 1, 0]] * 10


async def test_case_g2_a_sequential_tool_is_a_barrier(client: Client, cache: int) -> None:
    events: list[str] = []
    open_calls: set[str] = set()

    async def together(name: str) -> str:
        open_calls.add(name)
        await until(lambda: {"a", "b"} <= open_calls or {"c", "d"} <= open_calls)
        events.append(name)
        return name

    async def alone() -> str:
        assert sorted(events) == ["a", "b"]
        assert open_calls == {"a", "b"}
        events.append("alone")
        return "alone"

    tools = FunctionToolset[None](id="steps")
    tools.add_function(together)
    tools.add_function(alone, sequential=True)
    names = ["a", "b", "alone", "c", "d"]
    calls = [ToolCallPart(*(("alone", {}) if name == "alone" else ("together", {"name": name}))) for name in names]
    script = Script(calls, "done")  # pyright: ignore[reportArgumentType]
    async with working(client, App(agents=[Agent(script.model, name="steps", toolsets=[tools])]), cache=cache) as runs:
        handle = await runs.start("steps", "go")
        await handle.result()
        answered = [part for part in (await messages(handle))[2].parts if isinstance(part, ToolReturnPart)]
        assert [part.content for part in answered] == names
    assert events[2] == "alone"
