"""What the App finds wrong with a tool before any worker polls: its name, its types, its function, its description."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, SecretStr
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.messages import ToolReturn
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from perdure import App, DeclarationError, ToolPolicy
from tests.declaring import Left, Lock, Locked, Small, declared


@dataclass
class Opened:
    rows: list[io.TextIOWrapper]


class Renamed(BaseModel):
    n: int = Field(validation_alias="reads", serialization_alias="writes")


def returning(kind: Any) -> Callable[[], Any]:
    """A tool that says it returns this."""

    def tool() -> Any:
        """A tool."""

    tool.__annotations__["return"] = kind
    return tool


def taking(kind: Any) -> Callable[[Any], Any]:
    """A tool that says it takes this."""

    def tool(value: Any) -> str:
        """A tool."""
        return ""

    tool.__annotations__["value"] = kind
    return tool


RESULTS: list[tuple[Any, str]] = [
    (io.TextIOWrapper, "its result is TextIOWrapper, which can be read once only"),
    (Opened, "its result is TextIOWrapper, which can be read once only"),
    (Iterator[int], r"its result is collections.abc.Iterator\[int\]"),
    (list[AsyncIterator[int]], r"its result is collections.abc.AsyncIterator\[int\], which can be read once"),
    (Awaitable[int], "let it be async"),
    (Lock, "its result: lock can't be written as JSON and read again: Unable to generate"),
    (Locked, "its result: Locked can't be written as JSON and read again: Cannot generate"),
    (ToolReturn[Lock], "its result: lock can't be written"),
    (Callable[[], int], "Cannot generate a JsonSchema for core_schema.CallableSchema"),
]


@pytest.mark.filterwarnings("ignore:Could not generate return schema")
@pytest.mark.parametrize(("kind", "message"), RESULTS, ids=lambda value: str(value)[:20])
def test_s3_03_a_result_that_json_cannot_hold_is_refused(kind: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=f"agent 'small': tool 'tool': .*{message.split(': ')[-1]}"):
        declared(returning(kind))


@pytest.mark.parametrize("kind", [io.TextIOWrapper, Lock, Iterator[int], Callable[[], int], Locked])
def test_s3_03_an_argument_without_a_schema_is_refused_by_pydantic_ai(kind: Any) -> None:
    with pytest.raises((PydanticSchemaGenerationError, PydanticUserError)):
        declared(taking(kind))


ARGUMENTS: list[tuple[Any, str]] = [
    (Iterable[int], r"the argument 'value' is .*Iterable\[int\], which can be read once only; take a list"),
    (list[Left], "the argument 'value' doesn't survive JSON: Left.gone is excluded when it is written"),
    (Renamed | None, "Renamed.n is written under another name than it is read"),
    (SecretStr, "the argument 'value' is write-only"),
]


@pytest.mark.parametrize(("kind", "message"), ARGUMENTS, ids=lambda value: str(value)[:20])
def test_s3_03_an_argument_that_json_would_change_is_refused(kind: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        declared(taking(kind))


@pytest.mark.parametrize("kind", [None, Any, object, str | None, list[Small], dict[str, bytes], set[int], ToolReturn])
def test_types_that_survive_json_are_accepted(kind: Any) -> None:
    declared(returning(kind))
    declared(taking(Small))


@dataclass
class Deps:
    log: io.TextIOWrapper


def test_what_a_tool_gets_from_the_worker_need_not_survive_json() -> None:
    def tool(ctx: RunContext[Deps], n: int) -> Iterable[int]:
        """A tool."""
        return [n]

    declared(tool)


def test_a_tool_that_yields_is_refused() -> None:
    def tool() -> Iterable[int]:
        """A tool."""
        yield 1

    with pytest.raises(DeclarationError, match="tool 'tool': its function yields; a tool has one result"):
        declared(tool)
    named = update_wrapper(partial(tool), tool)
    with pytest.raises(DeclarationError, match="its function yields"):
        declared(named)


def look(n: int) -> str:
    """Look something up.

    Args:
        n: Where.
    """
    return str(n)


def bare(n: int) -> str:
    """Look something up."""
    return str(n)


def silent(n: Annotated[int, Field(description="Where.")]) -> str:
    return str(n)


def test_s1_05_missing_descriptions_are_errors_where_asked_for() -> None:
    with pytest.raises(DeclarationError, match="tool 'silent' has no description"):
        declared(silent, require_descriptions=True)
    with pytest.raises(DeclarationError, match=r"tool 'bare': no description of \['n'\]"):
        declared(bare, require_descriptions=True)
    external = ToolDefinition(name="print", description="Print.", parameters_json_schema={"type": "object"})
    declared(look, ExternalToolset([external], id="e"), require_descriptions=True)
    declared(silent, bare)


def test_names_are_unique_across_toolsets_with_pydantic_ais_hint() -> None:
    first, second = FunctionToolset([look], id="first"), FunctionToolset([look], id="second")
    with pytest.raises(
        DeclarationError, match=r"'first' and .*'second' both have|'second' and .*'first' both have"
    ) as raised:
        declared(first, second)
    assert "a tool 'look'. Rename the tool or wrap the toolset in a `PrefixedToolset`" in str(raised.value)
    make: Any = Agent
    for clash in (second.prefixed("a"), second.renamed({"a_look": "look"})):
        agent = make(TestModel(), name="small", toolsets=[first.prefixed("a"), clash])
        with pytest.raises(DeclarationError, match="both have a tool 'a_look'"):
            App(agents=[agent])
    App(agents=[make(TestModel(), name="small", toolsets=[first, second.prefixed("b")])])


def test_one_of_two_tools_of_a_name_may_be_shown_at_a_time() -> None:
    tools = FunctionToolset([look], id="first")
    make: Any = Agent
    halves = [tools.filtered(lambda ctx, _: bool(ctx.deps)), FunctionToolset([look], id="second").filtered(_no_deps)]
    App(agents=[make(TestModel(), name="small", toolsets=halves)])
    prepared: FunctionToolset[Any] = FunctionToolset(id="third")
    prepared.add_function(look, prepare=_hidden)
    App(agents=[make(TestModel(), name="small", toolsets=[tools, prepared])])


def _hidden(ctx: RunContext[Any], definition: ToolDefinition) -> None:
    """Leaves the tool out."""


def _no_deps(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
    return not ctx.deps


def test_a_policy_that_never_applies_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"policy 'lo\*' never applies: \['look'\] have \['l\*'\]"):
        declared(look, policies={"l*": ToolPolicy(), "lo*": ToolPolicy(effect="safe")})
    declared(look, bare, policies={"look": ToolPolicy(), "*": ToolPolicy(effect="safe")})
