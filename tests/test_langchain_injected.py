"""Injected arguments of LangChain's tools may be secrets: what is told of them, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool
from pydantic import BaseModel, Field, ValidationError, model_validator
from pydantic_ai import RunContext
from temporalio.client import Client

from perdure.errors import DeclarationError
from perdure.toolsets.langchain import LangChainToolset
from tests.foreign import ANN, RAN, told
from tests.harness import activities, failure_of, working
from tests.langchain_tools import an_app
from tests.reading import everything
from tests.scripts import Script

pytestmark = pytest.mark.usefixtures("nothing_ran")

SECRET = "sk-SECRET"


class Number(BaseModel):
    """A hidden argument that a text isn't."""

    key: str
    token: Annotated[int, InjectedToolArg]


class Other(BaseModel):
    """A hidden argument that goes by another name."""

    key: str
    token: Annotated[str, InjectedToolArg] = Field(alias="apiKey")


class Pair(BaseModel):
    """A rule on the whole that says too much."""

    key: str
    count: int
    token: Annotated[str, InjectedToolArg]

    @model_validator(mode="after")
    def fits(self) -> Pair:
        """Key and token."""
        if self.key != "good":
            raise ValueError(f"token {self.token} isn't one for {self.key}")
        return self


def taking(model: type[BaseModel], handle: Any = False, name: str = "read") -> BaseTool:
    """A tool with these arguments."""

    def run(**args: Any) -> str:
        RAN.append(args)
        return "read"

    return StructuredTool.from_function(
        run, name=name, description="Reads.", args_schema=model, handle_validation_error=handle
    )


def secret(_ctx: RunContext[Any]) -> str:
    """What is injected."""
    return SECRET


@pytest.mark.parametrize("model", [Number, Other])
@pytest.mark.parametrize("handle", [False, str], ids=["plain", "handled"])
async def test_a_refused_secret_ends_the_run_and_is_nowhere(client: Client, model: Any, handle: Any) -> None:
    """No model can mend it, whether the call names what it may or not."""
    for args in ({"key": "a"}, {}):
        app = an_app(Script({"read": args}, "done"), taking(model, handle), inject={"token": secret})
        async with working(client, app) as runs:
            run = await runs.start("clerk", "go", params=ANN)
            failure = await failure_of(run)
            assert failure.type == "InjectedArgumentInvalid"
            assert failure.message == "tool 'read': what `inject` gives for 'token' isn't what the tool takes"
            assert failure.non_retryable
            assert await activities(run) == ["model_request"]
            assert SECRET not in await everything(run)
    assert RAN == []


def words(error: ValidationError) -> str:
    """All that a tool can say of a report."""
    return f"{error!r} {error} {error.errors()} {error.json()}"


async def test_a_report_on_other_arguments_holds_no_value(client: Client, cache: int) -> None:
    tools = [taking(Pair), taking(Pair, "try again", "text"), taking(Pair, words, "calls")]
    script = Script(
        {"read": {"key": "bad", "count": 1}},
        {"read": {"key": "bad"}},
        {"text": {"key": "bad", "count": 1}},
        {"calls": {"key": "bad", "count": 1}},
        {"calls": {"key": "bad"}},
        {"calls": {"key": "bad", "count": "many"}},
        {"read": {"key": "good", "count": 1}},
        "done",
    )
    found, run = await told(client, an_app(script, *tools, inject={"token": secret}), cache)
    assert [outcome for outcome, _ in found] == ["retried"] * 6 + ["success"]
    texts = [text.removesuffix("\n\nFix the errors and try again.") for _, text in found]
    assert texts[0] == "The arguments are not valid: $: the arguments don't go together"
    assert texts[1] == "The arguments are not valid: $.count: Field required"
    assert texts[2] == "try again"
    assert "the arguments don't go together" in texts[3]
    assert "'loc': ('count',), 'msg': 'Field required', 'input': None" in texts[4]
    assert "valid integer" in texts[5]
    assert "many" not in texts[5]
    assert RAN == [{"key": "good", "count": 1, "token": SECRET}]
    history = await everything(run)
    assert "Field required" in history
    assert SECRET not in history


async def test_what_changes_between_plan_and_call_is_told_no_more_of(client: Client, cache: int) -> None:
    """The function is asked again for the call, and its value is looked at there too."""
    given: list[Any] = []

    def once(_ctx: RunContext[Any]) -> Any:
        given.append(1)
        return 1 if len(given) == 1 else SECRET

    app = an_app(Script({"read": {"key": "a"}}, "done"), taking(Number, str), inject={"token": once})
    async with working(client, app, cache=cache) as runs:
        run = await runs.start("clerk", "go", params=ANN)
        assert (await failure_of(run)).type == "InjectedArgumentInvalid"
        assert await activities(run) == ["model_request", "tool:read"]
        assert SECRET not in await everything(run)
    assert RAN == []


async def test_the_other_name_of_a_hidden_argument_is_not_the_models_to_give(client: Client) -> None:
    tool = taking(Other)
    script = Script({"read": {"key": "a", "apiKey": "mine"}}, "done")
    found, _ = await told(client, an_app(script, tool, inject={"token": secret}))
    assert found[0][0] == "retried"
    assert "['apiKey'] can't be given" in found[0][1]
    assert RAN == []


class Later:
    """Async by its class."""

    async def __call__(self, _ctx: RunContext[Any]) -> str:
        raise AssertionError


async def later(_ctx: RunContext[Any]) -> str:
    """Nobody awaits it."""
    raise AssertionError


def hides(_ctx: RunContext[Any]) -> Any:
    """Not async to look at."""
    return later(_ctx)


@pytest.mark.parametrize("function", [later, Later()], ids=["function", "object"])
def test_an_async_function_is_refused_at_construction(function: Callable[..., Any]) -> None:
    with pytest.raises(DeclarationError, match=r"inject\['token'\] is async, and nobody awaits it"):
        LangChainToolset([taking(Number)], id="chain", inject={"token": function})


async def test_a_coroutine_that_a_plain_function_gives_ends_the_run(client: Client) -> None:
    app = an_app(Script({"read": {"key": "a"}}, "done"), taking(Number), inject={"token": hides})
    async with working(client, app) as runs:
        failure = await failure_of(await runs.start("clerk", "go", params=ANN))
    assert failure.message == "tool 'read': what `inject` gives for 'token' is a coroutine, and nobody awaits it"
