"""What the adapters reach for in the other libraries beyond their documented API: an upgrade that changes it breaks
here first."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

from agents import RunContextWrapper, function_tool, tool_namespace
from agents.tool_context import ToolContext
from agents.util._approvals import (  # pyright: ignore[reportPrivateUsage]
    evaluate_function_tool_approval,
)
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool


async def above(_ctx: RunContextWrapper[Any], args: dict[str, Any], _id: str) -> bool:
    """Whether somebody has to look at it."""
    return args["cents"] > 100


@function_tool(needs_approval=above)
def pay(cents: int) -> str:
    """Pays."""
    raise AssertionError


async def test_the_sdk_has_a_rule_of_approvals_and_its_two_answers() -> None:
    names = list(inspect.signature(evaluate_function_tool_approval).parameters)
    assert names == ["function_tool", "context", "arguments", "call_id", "strict"]
    answers: list[str] = []
    for cents in (1, 1_000):
        arguments = f'{{"cents":{cents}}}'
        context: Any = ToolContext(None, tool_name="pay", tool_call_id="c", tool_arguments=arguments)
        answers.append((await evaluate_function_tool_approval(pay, context, arguments, "c")).outcome)
    assert answers == ["invoke", "require_approval"]


def test_the_sdk_keeps_the_description_of_a_namespace_with_its_tools() -> None:
    (namespaced,) = tool_namespace(name="bank", description="Money.", tools=[pay])
    assert (namespaced.qualified_name, namespaced.name) == ("bank.pay", "pay")
    described = [tool._tool_namespace_description for tool in (namespaced, pay)]  # pyright: ignore[reportPrivateUsage]
    assert described == ["Money.", None]


def read(key: str, user: Annotated[str, InjectedToolArg]) -> str:
    """Reads."""
    raise AssertionError


class Reads(BaseTool):
    """The same as a class."""

    name: str = "reads"
    description: str = "Reads."

    def _run(self, key: str, user: Annotated[str, InjectedToolArg]) -> str:
        raise AssertionError


def test_langchain_knows_the_arguments_that_it_injects_by_the_function() -> None:
    """`_injected_args_keys`, also where the schema doesn't name them."""
    schema = {"type": "object", "properties": {"key": {"type": "string"}}}
    tools = [StructuredTool.from_function(read), StructuredTool.from_function(read, args_schema=schema), Reads()]
    for tool in tools:
        assert tool._injected_args_keys == {"user"}  # pyright: ignore[reportPrivateUsage]
