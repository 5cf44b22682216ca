"""A `ValidationError` that a foreign tool's own body raises: a fault like others, unless its library shows it."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from agents import ToolGuardrailFunctionOutput, ToolInputGuardrailData, function_tool, tool_input_guardrail
from langchain_core.tools import InjectedToolArg, StructuredTool
from langchain_core.tools import tool as chain_tool
from pydantic import TypeAdapter
from pydantic_ai import RunContext
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.toolsets import AbstractToolset
from smolagents.tools import Tool as SmolTool  # pyright: ignore[reportMissingTypeStubs]
from smolagents.tools import (  # pyright: ignore[reportMissingTypeStubs]
    tool as smol_tool,  # pyright: ignore[reportUnknownVariableType]
)
from temporalio.client import Client

from perdure import ToolPolicy
from perdure.toolsets.langchain import LangChainToolset
from perdure.toolsets.openai_agents import OpenAIAgentsToolset
from perdure.toolsets.smolagents import SmolagentsToolset
from tests.foreign import ANN, RAN, clerk, told
from tests.harness import failure_of, working
from tests.reading import everything
from tests.scripts import Script

pytestmark = pytest.mark.usefixtures("nothing_ran")

SECRET = "sk-SECRET"
NAMED = ("failed", "The tool failed with ValidationError.")


def fails(key: str) -> str:
    """Reads what isn't as it should be.

    Args:
        key: What to read.
    """
    RAN.append(key)
    return str(TypeAdapter(int).validate_python(SECRET))


async def fails_async(key: str) -> str:
    """Reads what isn't as it should be."""
    return fails(key)


class Unready(SmolTool):
    """Its setup fails."""

    name = "unready"
    description = "Is never ready."
    inputs = {"key": {"type": "string", "description": "What to read."}}
    output_type = "string"

    def setup(self) -> None:
        fails("setup")

    def forward(self, key: str) -> str:
        """Never."""
        raise AssertionError


@tool_input_guardrail
def guards(_data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    """Fails."""
    fails("guard")
    raise AssertionError


@function_tool(name_override="guarded", tool_input_guardrails=[guards])
def guarded(key: str) -> str:
    """Never runs."""
    raise AssertionError


def toolsets() -> list[tuple[AbstractToolset[Any], list[str]]]:
    """A toolset of each library, with the names of tools that fail."""
    sdk = [
        function_tool(fails, name_override="sync", failure_error_function=None),
        function_tool(fails_async, name_override="async", failure_error_function=None),
        guarded,
    ]
    chain = [
        StructuredTool.from_function(fails, name="sync"),
        StructuredTool.from_function(coroutine=fails_async, name="async"),
    ]
    return [
        (SmolagentsToolset([smol_tool(fails)], id="smol"), ["fails"]),
        (OpenAIAgentsToolset(sdk, id="sdk"), ["sync", "async", "guarded"]),
        (LangChainToolset(chain, id="chain"), ["sync", "async"]),
    ]


@pytest.mark.parametrize("which", range(3), ids=["smolagents", "openai_agents", "langchain"])
async def test_a_validation_error_of_a_tool_is_a_fault(client: Client, which: int) -> None:
    """Repeated as the policy says, and told by its name: no retry of the model's, which would show the input."""
    toolset, names = toolsets()[which]
    policies = {name: ToolPolicy(effect="safe", attempts=2, backoff=0.01) for name in names}
    script = Script([ToolCallPart(name, {"key": name}) for name in names], "done")
    found, run = await told(client, clerk(script, toolset, **policies))
    assert found == [NAMED] * len(names)
    assert len(RAN) == 2 * len(names)
    history = await everything(run)
    assert "The tool failed with ValidationError" in history
    assert SECRET not in history


async def test_a_setup_that_fails_with_one_is_repeated_too(client: Client) -> None:
    policy = ToolPolicy(effect="safe", attempts=2, backoff=0.01)
    script = Script({"unready": {"key": "a"}}, "done")
    found, run = await told(client, clerk(script, SmolagentsToolset([Unready()], id="smol"), unready=policy))
    assert found == [("failed", "The tool was not run: its setup failed with ValidationError.")]
    assert RAN == ["setup", "setup"]
    assert SECRET not in await everything(run)


async def test_the_words_that_a_library_has_for_it_are_told(client: Client) -> None:
    sdk = OpenAIAgentsToolset([function_tool(fails)], id="sdk")
    found, _ = await told(client, clerk(Script({"fails": {"key": "a"}}, "done"), sdk))
    assert found == [("failed", "An error occurred while running the tool. Please try again.")]
    handled = StructuredTool.from_function(fails, handle_validation_error="look elsewhere")
    found, _ = await told(client, clerk(Script({"fails": {"key": "a"}}, "done"), LangChainToolset([handled], id="c")))
    assert found == [("failed", "look elsewhere")]


@chain_tool
def opens(key: str, token: Annotated[str, InjectedToolArg]) -> str:
    """Never runs."""
    raise AssertionError


async def test_one_of_a_function_of_inject_is_not_told_either(client: Client) -> None:
    def token(_ctx: RunContext[Any]) -> str:
        return fails("inject")

    app = clerk(Script({"opens": {"key": "a"}}, "done"), LangChainToolset([opens], id="chain", inject={"token": token}))
    async with working(client, app) as runs:
        run = await runs.start("clerk", "go", params=ANN)
        assert (await failure_of(run)).type == "ValidationError"
        assert SECRET not in await everything(run)
