"""Results from outside: arguments and results that are checked, questions, declarations."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, CallDeferred, FunctionToolset, RunContext
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from temporalio.client import Client

from perdure import App, DeclarationError, DurableAgent, ToolPolicy
from perdure.toolsets.ask_user import ask_user
from tests.deciding import answers, pending, refused, rejected, update
from tests.harness import activities, until, working
from tests.outside import office
from tests.scripts import Script


class Ticket(BaseModel):
    number: int


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
