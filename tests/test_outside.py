"""Results from outside: arguments and results that are checked, dispatchers, questions, results that come too late."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, CallDeferred, FunctionToolset, RunContext
from pydantic_ai.messages import ModelResponsePart, ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from perdure import App, Approval, DeclarationError, DurableAgent, ExternalCall, Notification, ToolPolicy
from perdure.client import PerdureClient
from perdure.toolsets.ask_user import ask_user
from tests.deciding import Row, answers, pending, refused, rejected, update
from tests.harness import activities, failure_of, until, working
from tests.scripts import Script

PRINT = ToolDefinition(
    name="print",
    description="Print something, somewhere else.",
    parameters_json_schema={
        "type": "object",
        "properties": {"pages": {"type": "integer", "minimum": 1}},
        "required": ["pages"],
        "additionalProperties": False,
    },
    return_schema={"type": "object", "properties": {"job": {"type": "string"}}, "required": ["job"]},
)


class Ticket(BaseModel):
    number: int


def office(script: Script, **policy: Any) -> App:
    """An agent with one external tool."""
    agent: Any = Agent(script.model, name="office", toolsets=[ExternalToolset([PRINT], id="printer")], retries=1)
    return App(agents=[DurableAgent(agent, policies={"print": ToolPolicy(**policy)} if policy else {})])


async def test_bad_arguments_go_back_to_the_model_and_nobody_is_asked(client: Client, cache: int) -> None:
    script = Script({"print": {"pages": 0}}, {"print": {"pages": 2}}, "done")
    async with working(client, office(script), cache=cache) as runs:
        handle = await runs.start("office", "go")
        (row,) = await pending(handle, 1)
        assert row["args"] == {"pages": 2}
        await update(handle, "complete", {"call": row["call"], "result": {"job": "7"}})
        result = await handle.result()
        found = await answers(handle)
        assert found["c0.0"][0] == "retried"
        assert "$.pages: 0 is less than the minimum of 1" in found["c0.0"][1]
        assert found["c1.0"] == ("success", '{"job":"7"}')
    assert [row["event"] for row in result["audit"]] == ["asked", "completed"]


@pytest.mark.parametrize("args", ["[1]", "{", '"text"', '{"pages": 1, "x": 2}'])
async def test_arguments_of_any_shape_go_back_to_the_model(client: Client, args: str) -> None:
    script = Script([ToolCallPart("print", args)], "gave up")
    async with working(client, office(script)) as runs:
        assert (await runs.run("office", "go"))["output"] == "gave up"


async def test_a_model_that_never_mends_them_ends_the_run_typed(client: Client) -> None:
    script = Script({"print": {}}, {"print": {}}, {"print": {}})
    async with working(client, office(script)) as runs:
        assert (await runs.failure("office", "go")).type == "UnexpectedModelBehavior"


async def test_a_result_is_checked_by_its_schema(client: Client, cache: int) -> None:
    async with working(client, office(Script({"print": {"pages": 1}}, "done")), cache=cache) as runs:
        handle = await runs.start("office", "go")
        (row,) = await pending(handle, 1)
        text = await refused(handle, "complete", {"call": row["call"], "result": {"job": 7}})
        assert "$.job: 7 is not of type 'string'" in text
        await handle.signal("complete", {"call": row["call"], "result": None})
        await until(lambda: rejected(handle, 1))
        await update(handle, "complete", {"call": row["call"], "result": {"job": "7"}})
        await handle.result()
        assert (await answers(handle))["c0.0"] == ("success", '{"job":"7"}')


async def test_a_result_is_checked_by_the_policys_type(client: Client) -> None:
    tools = FunctionToolset[None](id="tickets")

    @tools.tool_plain
    def ticket(title: str) -> Ticket:
        """Open a ticket elsewhere."""
        raise CallDeferred(metadata={"queue": "b"})

    make: Any = Agent
    agent = make(Script({"ticket": {"title": "x"}}, "done").model, name="desk", toolsets=[tools])
    app = App(agents=[DurableAgent(agent, policies={"ticket": ToolPolicy(result=Ticket)})])
    async with working(client, app) as runs:
        handle = await runs.start("desk", "go")
        (row,) = await pending(handle, 1)
        assert (row["kind"], row["metadata"]) == ("external", {"queue": "b"})
        text = await refused(handle, "complete", {"call": row["call"], "result": {"number": "many"}})
        assert "value.number: Input should be a valid integer" in text
        await update(handle, "complete", {"call": row["call"], "result": {"number": 12}})
        await handle.result()


async def test_ask_user_waits_for_an_answer_without_an_activity(client: Client, cache: int) -> None:
    first = {"ask_user": {"question": "Which colour?", "choices": ["red", "blue"]}}
    script = Script(first, {"ask_user": {"question": "Why?"}}, "ok")
    make: Any = Agent
    app = App(agents=[make(script.model, name="asks", tools=[ask_user])])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("asks", "go")
        (row,) = await pending(handle, 1)
        assert (row["kind"], row["args"]["question"], row["metadata"]) == ("question", "Which colour?", {})
        assert "is not one of ['red', 'blue']" in await refused(
            handle, "complete", {"call": row["call"], "result": "green"}
        )
        await update(handle, "complete", {"call": row["call"], "result": "blue", "by": "ann"})
        await until(lambda: _asks_why(handle))
        (row,) = await pending(handle, 1)
        assert "non-empty" in await refused(handle, "complete", {"call": row["call"], "result": ""})
        await update(handle, "complete", {"call": row["call"], "result": "because"})
        assert (await handle.result())["output"] == "ok"
        assert await answers(handle) == {"c0.0": ("success", "blue"), "c1.0": ("success", "because")}
        assert not [name for name in await activities(handle) if name.startswith("tool:")]


async def _asks_why(handle: Any) -> bool:
    return [row["args"]["question"] for row in await handle.query("pending")] == ["Why?"]


async def test_a_dispatcher_hands_the_call_over_once_with_one_key(client: Client, cache: int) -> None:
    given: list[ExternalCall] = []

    async def dispatch(call: ExternalCall) -> None:
        given.append(call)
        if len(given) == 1:
            raise ConnectionError("not now")

    app = office(Script({"print": {"pages": 3}}, "done"), dispatch=dispatch, wait=timedelta(hours=1))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("office", "go", metadata={"floor": 2})
        (row,) = await pending(handle, 1)
        await until(lambda: len(given) == 2)
        (row,) = await pending(handle, 1)
        await update(handle, "complete", {"call": given[1].call, "result": {"job": "7"}})
        await handle.result()
    first, second = given
    assert first == second
    assert (second.call, second.workflow_id, second.kind) == (row["call"], handle.id, "external")
    assert second.args == {"pages": 3}
    assert (second.run_metadata, second.expires_at) == ({"floor": 2}, row["expires_at"])
    assert len(second.idempotency_key) == 32


async def test_a_call_that_cannot_be_handed_over_fails(client: Client) -> None:
    async def dispatch(call: ExternalCall) -> None:
        raise ApplicationError("no such printer", type="NoPrinter", non_retryable=True)

    async with working(client, office(Script({"print": {"pages": 3}}, "done"), dispatch=dispatch)) as runs:
        handle = await runs.start("office", "go")
        result = await handle.result()
        outcome, text = (await answers(handle))["c0.0"]
        assert (outcome, "could not be handed over" in text) == ("failed", True)
    assert [row["event"] for row in result["audit"]] == ["asked", "not dispatched"]
    assert result["audit"][1]["reason"] == "NoPrinter: no such printer"


async def test_a_result_that_comes_too_late_is_refused_and_kept(client: Client) -> None:
    script = Script({"print": {"pages": 3}}, {"print": {"pages": 4}}, "done")
    async with working(client, office(script, wait=3)) as runs:
        handle = await runs.start("office", "go")
        (row,) = await pending(handle, 1)
        later: Row = {}

        async def asks_again() -> bool:
            rows = [one for one in await handle.query("pending") if one["call"] != row["call"]]
            later.update(rows[0] if rows else {})
            return bool(later)

        await until(asks_again)
        text = await refused(handle, "complete", {"call": row["call"], "result": {"job": "7"}})
        assert text == f"AlreadyDecided: call {row['call']!r} is already decided: expired"
        await update(handle, "complete", {"call": later["call"], "result": {"job": "8"}})
        result = await handle.result()
        assert "No result came in time" in (await answers(handle))["c0.0"][1]
    assert [row["event"] for row in result["audit"]] == ["asked", "expired", "asked", "refused", "completed"]


async def test_an_expiry_outside_may_end_the_run(client: Client) -> None:
    app = office(Script({"print": {"pages": 3}}), wait=0.3, on_timeout="fail")
    async with working(client, app) as runs:
        handle = await runs.start("office", "go")
        assert (await failure_of(handle)).type == "ToolTimeout"


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


BAD_DECLARATIONS: list[tuple[dict[str, Any], str]] = [
    ({"result": {"type": "no such type"}}, "result isn't a JSON Schema"),
    ({"result": object()}, "neither a JSON Schema nor a type"),
    ({"dispatch": print}, "isn't an async function"),
    ({"wait": 0}, "wait=0"),
]


@pytest.mark.parametrize(("policy", "why"), BAD_DECLARATIONS, ids=lambda value: str(value)[:30])
def test_bad_declarations_are_refused(policy: dict[str, Any], why: str) -> None:
    with pytest.raises(DeclarationError, match=why):
        office(Script("x"), **policy)


def test_a_schema_that_is_none_is_refused() -> None:
    bad = ToolDefinition(name="bad", parameters_json_schema={"type": 5})
    with pytest.raises(DeclarationError, match="tool 'bad': parameters_json_schema isn't a JSON Schema"):
        App(agents=[Agent(Script("x").model, name="x", toolsets=[ExternalToolset([bad], id="x")])])


async def test_an_external_tool_that_is_gated_is_handed_over_when_it_is_approved(client: Client, cache: int) -> None:
    given: list[ExternalCall] = []

    async def dispatch(call: ExternalCall) -> None:
        given.append(call)

    app = office(Script({"print": {"pages": 3}}, "done"), dispatch=dispatch, approval=Approval(approvers=["boss"]))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("office", "go")
        (row,) = await pending(handle, 1)
        assert (row["kind"], row["approvers"]) == ("approval", ["boss"])
        assert "use approve or deny" in await refused(handle, "complete", {"call": row["call"], "result": {"job": "7"}})
        assert not given
        await update(handle, "approve", {"call": row["call"], "by": "boss"})
        await until(lambda: len(given) == 1)
        (row,) = await pending(handle, 1)
        assert row["kind"] == "external"
        await update(handle, "complete", {"call": row["call"], "result": {"job": "7"}})
        result = await handle.result()
    assert [one["event"] for one in result["audit"]] == ["asked", "approved", "asked", "dispatched", "completed"]


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


async def test_the_metadata_of_a_tool_is_its_own(client: Client) -> None:
    seen: list[Any] = []
    tools = FunctionToolset[None](id="own")

    @tools.tool
    def own(ctx: RunContext[None]) -> str:
        """Asks with metadata of its own."""
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"action": "delete", "result_schema": 3})
        seen.append(ctx.tool_call_metadata)
        return "ok"

    @tools.tool_plain
    def huge() -> str:
        """Asks with too much."""
        raise ApprovalRequired(metadata={"x": "y" * 200_000})

    script = Script([ToolCallPart("own", {}), ToolCallPart("huge", {})], "done")
    make: Any = Agent
    async with working(client, App(agents=[make(script.model, name="own", toolsets=[tools])])) as runs:
        handle = await runs.start("own", "go")
        (row,) = await pending(handle, 1)
        await update(handle, "approve", {"call": row["call"]})
        await handle.result()
        assert "it may have 100000" in (await answers(handle))["c0.1"][1]
    assert seen == [{"action": "delete", "result_schema": 3}] == [row["metadata"]]
