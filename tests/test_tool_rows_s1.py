"""Rows S1 of the table in docs/tools.md that no other test proves: Pydantic AI's tools as people write them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from pydantic_ai import Agent, FunctionToolset, RunContext, Tool, ToolReturn
from pydantic_ai.capabilities import PrepareTools
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ImageUrl, ModelRequest, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from temporalio.client import Client

from perdure import App, DurableAgent
from tests.harness import activities, messages, working
from tests.scripts import Script


def without(n: int) -> int:
    """No context."""
    return n


def with_context(ctx: RunContext[Any], n: int) -> int:
    """With context."""
    return n


def context_last(n: int, ctx: RunContext[Any]) -> int:
    """Context at the wrong place."""
    return n


def decorates() -> Any:
    """An agent to decorate functions with; untyped, since a type checker refuses what these tests show."""
    return Agent(TestModel(), name="decorates")


DECORATED: dict[str, tuple[Callable[[], object], str]] = {
    "s1_02_plain_with_context": (
        lambda: decorates().tool_plain(with_context),
        "RunContext annotations can only be used with tools that take context",
    ),
    "s1_03_context_last": (
        lambda: decorates().tool(context_last),
        "RunContext annotations can only be used as the first argument",
    ),
    "s1_02_context_last": (
        lambda: Tool(context_last, takes_ctx=False),
        "RunContext annotations can only be used with tools that take context",
    ),
    "s1_04_tool_without_context": (
        lambda: decorates().tool(without),
        r"First parameter of tools that take context must be annotated with RunContext\[...\]",
    ),
    "s1_15_toolset_tool_without_context": (
        lambda: cast("Any", FunctionToolset(id="t")).tool(without),
        r"First parameter of tools that take context must be annotated with RunContext\[...\]",
    ),
    "s1_18_negative_retries": (lambda: Tool(without, max_retries=-1), "max_retries"),
    "s1_18_no_time": (lambda: Tool(without, timeout=0), "timeout"),
}


@pytest.mark.parametrize("name", DECORATED)
def test_s1_04_a_tool_that_is_written_wrong_is_refused_where_it_is_written(name: str) -> None:
    """Rows S1-01 to S1-04, S1-15, S1-18: by Pydantic AI, at import, before there is an App."""
    make, message = DECORATED[name]
    with pytest.raises(UserError, match=message):
        make()


def test_s1_01_a_context_without_annotation_is_taken_as_one() -> None:
    """perdure has no decorators of its own, so it is as strict as Pydantic AI, which lets this pass."""
    decorated = decorates()

    def unannotated(ctx: Any, n: int) -> int:
        return n

    del unannotated.__annotations__["ctx"]
    decorated.tool(unannotated)
    (toolset,) = decorated.toolsets
    assert list(toolset.tools["unannotated"].tool_def.parameters_json_schema["properties"]) == ["n"]


def google(city: str) -> str:
    """Say the weather.

    Args:
        city: A city.
    """
    return city


def numpy(city: str) -> str:
    """Say the weather.

    Parameters
    ----------
    city : str
        A city.
    """
    return city


def sphinx(city: str) -> str:
    """Say the weather.

    :param city: A city.
    """
    return city


def translated(city: str) -> str:
    """Say the weather.

    参数:
        city: A city.
    """
    return city


DESCRIBED = {"type": "string", "description": "A city."}
DOCSTRINGS: dict[str, tuple[Callable[..., str], Any, str, dict[str, str]]] = {
    "s1_06_google": (google, "auto", "Say the weather.", DESCRIBED),
    "s1_06_numpy": (numpy, "auto", "Say the weather.", DESCRIBED),
    "s1_06_sphinx": (sphinx, "auto", "Say the weather.", DESCRIBED),
    "s1_06_wrong": (google, "sphinx", "Say the weather.\n\nArgs:\n    city: A city.", {"type": "string"}),
    "s1_07_sphinx": (sphinx, "sphinx", "Say the weather.", DESCRIBED),
    "s1_08_translated": (translated, "auto", "Say the weather.", {"type": "string"}),
}


@pytest.mark.parametrize("name", DOCSTRINGS)
def test_s1_06_what_a_docstring_says_of_its_arguments(name: str) -> None:
    """Rows S1-06 to S1-08. What is found is what `perdure check` and the model see: the same definition."""
    function, docstring_format, description, schema = DOCSTRINGS[name]
    definition = Tool(function, docstring_format=docstring_format).tool_def
    assert definition.description == description
    assert definition.parameters_json_schema["properties"]["city"] == schema


async def test_s1_10_content_comes_after_all_returns_and_metadata_stays_in_the_transcript(client: Client) -> None:
    with pytest.raises(TypeError, match="return_value"):
        cast("Any", ToolReturn)(content=["no value"])

    def look(n: int) -> ToolReturn[str]:
        return ToolReturn(f"saw {n}", content=[ImageUrl(url=f"https://example.com/{n}.png")], metadata={"n": n})

    script = Script([ToolCallPart("look", {"n": 1}), ToolCallPart("look", {"n": 2})], "done")
    async with working(client, App(agents=[Agent(script.model, name="looks", tools=[look])])) as runs:
        handle = await runs.start("looks", "go")
        assert (await handle.result())["output"] == "done"
        request = (await messages(handle))[2]
    assert isinstance(request, ModelRequest)
    assert [type(part) for part in request.parts] == [ToolReturnPart] * 2 + [UserPromptPart] * 2
    returned = [part for part in request.parts if isinstance(part, ToolReturnPart)]
    assert [part.metadata for part in returned] == [{"n": 1}, {"n": 2}]
    assert [part.model_response_str() for part in returned] == ["saw 1", "saw 2"], "the model reads no metadata"


async def test_s1_13_tools_are_prepared_for_who_runs_them(client: Client, cache: int) -> None:
    make: Any = Agent
    with pytest.raises(TypeError, match="prepare_tools"):
        make(TestModel(), name="old", prepare_tools=with_context)

    async def by_role(ctx: RunContext[str], definitions: list[ToolDefinition]) -> list[ToolDefinition]:
        return [one for one in definitions if ctx.deps == "admin" or one.name != "drop"]

    def drop() -> str:
        """For admins."""
        return "dropped"

    script = Script({"without": {"n": 1}}, "done")
    prepared = make(
        script.model, name="roles", tools=[without, drop], deps_type=str, capabilities=[PrepareTools(by_role)]
    )
    app = App(agents=[DurableAgent(prepared, params_type=str)])
    async with working(client, app, cache=cache) as runs:
        for role in ("user", "admin"):
            assert (await runs.run("roles", "go", params=role))["output"] == "done"
    seen = [[tool.name for tool in info.function_tools] for info in script.infos]
    assert seen == [["without"]] * 2 + [["without", "drop"]] * 2


async def test_s1_14_prepare_runs_at_the_request_and_at_each_call(client: Client, cache: int) -> None:
    """In Pydantic AI once a step; here once an activity, and it sees the same step in both."""
    steps: list[int] = []

    async def prepare(ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition:
        steps.append(ctx.run_step)
        return replace(definition, description=f"step {ctx.run_step}")

    twice: Any = [ToolCallPart("without", {"n": 1}), ToolCallPart("without", {"n": 2})]
    script = Script({"without": {"n": 0}}, twice, "done")
    tool = Tool(without, prepare=prepare)
    async with working(client, App(agents=[Agent(script.model, name="prepares", tools=[tool])]), cache=cache) as runs:
        assert (await runs.run("prepares", "go"))["output"] == "done"
    assert steps == [1, 1, 2, 2, 2, 3]
    assert [info.function_tools[0].description for info in script.infos] == ["step 1", "step 2", "step 3"]


async def test_s1_17_sync_tools_run_in_threads_of_the_worker(client: Client, cache: int) -> None:
    """Never in the workflow: all tools are activities, and there is no way to ask for another place."""
    threads: dict[str, threading.Thread] = {}
    both = threading.Barrier(2, timeout=30)

    def blocking(name: str) -> str:
        both.wait()
        threads[name] = threading.current_thread()
        return name

    async def awaiting() -> str:
        threads["loop"] = threading.current_thread()
        return "loop"

    turn: Any = [ToolCallPart("blocking", {"name": "a"}), ToolCallPart("blocking", {"name": "b"})]
    script = Script([*turn, ToolCallPart("awaiting", {})], "done")
    async with working(
        client, App(agents=[Agent(script.model, name="threads", tools=[blocking, awaiting])]), cache=cache
    ) as runs:
        handle = await runs.start("threads", "go")
        assert (await handle.result())["output"] == "done"
        assert sorted(await activities(handle)) == ["model_request"] * 2 + ["tool:awaiting"] + ["tool:blocking"] * 2
    assert threads["loop"] is threading.current_thread()
    assert len({thread.ident for thread in threads.values()}) == 3
