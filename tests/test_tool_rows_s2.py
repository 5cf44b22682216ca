"""Rows S2 of the table in docs/tools.md that no other test proves: how a step's calls are planned and scheduled."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from perdure import App, Approval, DurableAgent, ToolPolicy
from perdure.activities.model_request import ModelRequests
from perdure.activities.runtime import Runtime
from perdure.contracts import Mark, Seen, Step, StepInput
from perdure.contracts.base import chain_digest
from tests.harness import Handle, messages, until, working
from tests.reading import returns
from tests.scripts import Script

SCHEDULED = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
COMPLETED = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
PRINT = ToolDefinition(
    name="print", parameters_json_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
)


class Answer(BaseModel):
    n: int


def office(script: Script) -> App:
    """One tool for each way a call can be planned."""
    tools = FunctionToolset[Any](id="office")

    def never(n: int) -> str:
        raise AssertionError("a plan runs nothing")

    for name in ("look", "pay"):
        tools.add_function(never, name=name)
    tools.add_function(never, name="delete", requires_approval=True)
    tools.add_function(never, name="alone", sequential=True)
    toolsets = [tools, ExternalToolset[Any]([PRINT], id="outside")]
    agent = Agent[Any, Any](script.model, name="office", toolsets=toolsets, output_type=Answer)
    return App(agents=[DurableAgent(agent, policies={"pay": ToolPolicy(approval=Approval())})])


async def planned(client: Client, turn: Any) -> Step:
    """What `model_request` makes of a response, without a run."""
    at = "2026-01-01T00:00:00Z"
    entries: list[Any] = [
        {"kind": "start", "agent": "office", "at": at},
        {"kind": "user", "content": "go", "at": at},
    ]
    digest = ""
    for entry in entries:
        digest = chain_digest(digest, entry)
    seen = Seen(base=Mark(), tail=entries, until=Mark(length=len(entries), digest=digest))
    async with Runtime(office(Script(turn))) as runtime:
        request = ModelRequests(runtime).model_request
        return await ActivityEnvironment(client=client).run(
            request, StepInput(agent="office", seen=seen, step=1, run_id="run")
        )


GOOD = {"n": 1}
PLANS: dict[str, tuple[list[tuple[str, Any]], list[str], list[str], str]] = {
    "plain": ([("look", GOOD)], ["look run"], [], "now"),
    "in order": ([("alone", GOOD), ("look", GOOD)], ["alone run sequential", "look run"], [], "now"),
    "gated by policy": ([("pay", GOOD)], ["pay approve"], [], "now"),
    "gated by the tool": ([("delete", GOOD)], ["delete approve"], [], "now"),
    "external": ([("print", GOOD)], ["print external"], [], "now"),
    "invalid": ([("look", {"n": "x"}), ("pay", {})], [], ["look retried", "pay retried"], "now"),
    "invalid external": ([("print", {})], [], ["print retried"], "now"),
    "unknown": ([("nothing", {})], [], ["nothing retried"], "now"),
    "mixed": (
        [("nothing", {}), ("look", GOOD), ("pay", GOOD), ("look", "{")],
        ["look run", "pay approve"],
        ["nothing retried", "look retried"],
        "now",
    ),
    "output": ([("final_result", {"n": 7})], [], ["final_result success"], "now"),
    "output beside calls": ([("final_result", {"n": 7}), ("look", GOOD)], ["look run"], [], "after_calls"),
}


@pytest.mark.parametrize("name", PLANS)
async def test_s2_09_a_response_becomes_a_plan(client: Client, name: str) -> None:
    """Each call is planned, or answered at once, or left to `settle`; nothing runs."""
    calls, plans, told, settle = PLANS[name]
    step = await planned(client, [ToolCallPart(tool, args) for tool, args in calls])
    assert [
        f"{call.tool} {call.action}{' sequential' if call.options.sequential else ''}" for call in step.calls
    ] == plans
    assert [f"{part['tool_name']} {part['outcome']}" for part in step.parts] == told
    assert (step.settle, step.error) == (settle, None)
    assert (step.output is None) == (name != "output")


async def scheduled(handle: Handle) -> list[tuple[Any, int]]:
    """The activities of tools: each event's type, and the workflow task that scheduled it (0 for an end)."""
    history = await handle.fetch_history()
    tools: set[int] = set()
    rows: list[tuple[Any, int]] = []
    for event in history.events:
        begun, ended = (
            event.activity_task_scheduled_event_attributes,
            event.activity_task_completed_event_attributes,
        )
        if event.event_type == SCHEDULED and begun.activity_type.name.startswith("tool:"):
            tools.add(event.event_id)
            rows.append((SCHEDULED, begun.workflow_task_completed_event_id))
        if event.event_type == COMPLETED and ended.scheduled_event_id in tools:
            rows.append((COMPLETED, 0))
    return rows


async def test_s2_12_calls_of_a_step_are_scheduled_together_and_answered_in_call_order(
    client: Client, cache: int
) -> None:
    """Also S2-10: one workflow task schedules all that may run at once."""
    ended: list[int] = []

    async def last_first(n: int) -> int:
        await until(lambda: len(ended) == 4 - n)
        ended.append(n)
        return n

    turn: Any = [ToolCallPart("last_first", {"n": n}) for n in range(5)]
    script = Script(turn, "done")
    async with working(
        client, App(agents=[Agent(script.model, name="together", tools=[last_first])]), cache=cache
    ) as runs:
        handle = await runs.start("together", "go")
        assert (await handle.result())["output"] == "done"
        rows = await scheduled(handle)
        assert [part.content for part in returns(await messages(handle))] == [0, 1, 2, 3, 4]
    assert [kind for kind, _ in rows] == [SCHEDULED] * 5 + [COMPLETED] * 5
    assert len({task for kind, task in rows if kind == SCHEDULED}) == 1
    assert ended == [4, 3, 2, 1, 0]


async def test_s2_11_calls_run_one_after_the_other_where_the_agent_says_so(client: Client, cache: int) -> None:
    """`max_parallel_calls=1`, for what the SDK has no option."""
    ran: list[int] = []

    async def note(n: int) -> int:
        ran.append(n)
        return n

    turn: Any = [ToolCallPart("note", {"n": n}) for n in range(4)]
    agent = Agent(Script(turn, "done").model, name="single", tools=[note])
    async with working(client, App(agents=[DurableAgent(agent, max_parallel_calls=1)]), cache=cache) as runs:
        handle = await runs.start("single", "go")
        assert (await handle.result())["output"] == "done"
        assert [kind for kind, _ in await scheduled(handle)] == [SCHEDULED, COMPLETED] * 4
    assert ran == [0, 1, 2, 3]
