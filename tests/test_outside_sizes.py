"""Arguments and results of calls from outside that are large, empty, or declared nowhere."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, CallDeferred, FunctionToolset
from pydantic_ai.messages import ModelResponsePart, ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.common import RawValue

from perdure import App, DurableAgent, ExternalCall, Notification, ToolPolicy
from perdure.client import PerdureClient
from tests.deciding import answers, pending, refused, update
from tests.harness import until, working
from tests.scripts import Script


async def test_results_that_are_too_large_or_empty(client: Client) -> None:
    tools = FunctionToolset[None](id="any")

    @tools.tool_plain
    def anything() -> Any:
        """Whatever comes."""
        raise CallDeferred

    results: list[Any] = [None, "", False, 0, [], {}]
    calls: list[ModelResponsePart] = [ToolCallPart("anything", {}) for _ in results]
    script = Script(calls, "done")
    async with working(client, App(agents=[Agent(script.model, name="any", toolsets=[tools])])) as runs:
        handle = await runs.start("any", "go")
        rows = await pending(handle, len(results))
        text = await refused(handle, "complete", {"call": rows[0]["call"], "result": "x" * 1_600_000})
        assert "it may have 1500000" in text
        for row, result in zip(rows, results, strict=True):
            await update(handle, "complete", {"call": row["call"], "result": result})
        await handle.result()
        texts = [text for _, text in (await answers(handle)).values()]
    assert texts == ["", "", "false", "0", "", "{}"], "as Pydantic AI writes them"


def free(script: Script, **policy: Any) -> App:
    """An agent with one external tool that takes and returns anything."""
    tool = ToolDefinition(name="any", parameters_json_schema={"type": "object"})
    make: Any = Agent
    agent = make(script.model, name="free", toolsets=[ExternalToolset([tool], id="free")])
    return App(agents=[DurableAgent(agent, policies={"any": ToolPolicy(**policy)} if policy else {})])


async def test_arguments_that_are_declared_nowhere_are_carried(client: Client) -> None:
    async with working(client, free(Script({"any": {"to": "bob"}}, "done"))) as runs:
        handle = await runs.start("free", "go")
        (row,) = await pending(handle, 1)
        assert row["args"] == {"to": "bob"}
        for bad in ({}, {"error": ""}, {"result": 1, "error": "x"}):
            assert "InvalidRequest" in await refused(handle, "complete", {"call": row["call"], **bad})
        data = b'{"call": "%s", "result": [NaN]}' % row["call"].encode()
        nan = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=data))
        assert "isn't finite" in await refused(handle, "complete", nan)
        await PerdureClient(client).run(handle.id).complete(row["call"], "")
        await handle.result()
        assert await answers(handle) == {"c0.0": ("success", "")}


async def test_what_is_large_goes_beside_what_is_large(client: Client) -> None:
    """Arguments, a result and the run's metadata, each under the limit: together in one command they are over it."""
    given: list[ExternalCall] = []

    async def dispatch(call: ExternalCall) -> None:
        given.append(call)

    async def notifier(notification: Notification) -> None: ...

    app = free(Script({"any": {"x": "a" * 700_000}}, "done"), dispatch=dispatch, result=str)
    app.notifier = notifier
    async with working(client, app) as runs:
        handle = await runs.start("free", "go", metadata={"m": "b" * 900_000})
        (row,) = await pending(handle, 1)
        await until(lambda: len(given) == 1)
        assert "left_out" in given[0].run_metadata
        await update(handle, "complete", {"call": row["call"], "result": "c" * 1_400_000})
        assert (await handle.result())["output"] == "done"


async def test_results_that_are_checked_together_never_end_the_run(client: Client) -> None:
    calls: list[ModelResponsePart] = [ToolCallPart("any", {"n": n}) for n in range(3)]
    app = free(Script(calls, "done"), result=str)
    async with working(client, app, check=False) as runs:
        handle = await runs.start("free", "go")
        rows = await pending(handle, 3)
    for row in rows:
        await handle.signal("complete", {"call": row["call"], "result": "x" * 1_400_000})
    async with working(client, app, task_queue=runs.task_queue) as again:
        again.handles.append(handle)
        for row in await pending(handle, 2):
            await update(handle, "complete", {"call": row["call"], "result": "y"})
        assert (await handle.result())["output"] == "done"
        assert (await handle.query("status"))["rejected_count"] == 2
