"""What isn't a tool of the library that an adapter is for, with what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.tools import InjectedToolArg, tool
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from perdure import DeclarationError
from perdure.toolsets import langchain, openai_agents, smolagents

lang: Any = langchain.LangChainToolset
smol: Any = smolagents.SmolagentsToolset
openai: Any = openai_agents.OpenAIAgentsToolset
"""They are called with what no type checker lets pass."""


def weather(city: str) -> str:
    """The weather of a city."""
    return city


@tool
def orders(customer: Annotated[str, InjectedToolArg]) -> str:
    """The orders of a customer."""
    return customer


def injecting(given: Any) -> Any:
    """A toolset whose `customer` comes from there."""
    return lang([orders], id="l", inject={"customer": given})


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: lang(orders, id="l"), "toolset 'l': a StructuredTool isn't a list of tools: put it into one, […]"),
    (lambda: smol(weather, id="l"), "toolset 'l': the function weather isn't a list of tools: put it into one"),
    (lambda: openai(weather, id="l"), "toolset 'l': the function weather isn't a list of tools: put it into one"),
    (lambda: lang("orders", id="l"), "toolset 'l': 'orders' isn't a list of tools"),
    (
        lambda: lang([weather], id="l"),
        "put @langchain_core.tools.tool before the function, or give it to a FunctionTool",
    ),
    (lambda: smol([weather], id="l"), "the function weather is no smolagents.tools.Tool: put @smolagents.tool before"),
    (lambda: openai([weather], id="l"), "put @agents.function_tool before the function, or give it to a FunctionTools"),
    (lambda: lang([type(orders)], id="l"), "it is a class; make one, StructuredTool(…)"),
    (lambda: lang([[orders]], id="l"), "it is a list of them, so put a * before it"),
    (lambda: lang([orders], id=3), "id of a toolset=3 must be text"),
    (lambda: injecting("ada"), "toolset 'l': inject['customer']='ada' must be a function"),
    (lambda: injecting(lambda: "ada"), "inject['customer']=the function <lambda> can't be called with 1 argument: too"),
    (
        lambda: lang([orders], id="l", inject=["customer"]),
        "inject=['customer'] must be a dictionary, names to a function",
    ),
]


@pytest.mark.parametrize(("declare", "text"), WRONG, ids=[row[1][:40] for row in WRONG])
def test_what_is_no_tool_is_refused_with_what_to_do(declare: Callable[[], Any], text: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        declare()
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_pair_is_no_list_of_tools() -> None:
    with pytest.raises(DeclarationError) as raised:
        lang([("name", "orders")], id="l")
    assert str(raised.value) == "toolset 'l': ('name', 'orders') is no langchain_core.tools.base.BaseTool"


def test_an_adapter_among_tools_says_where_it_belongs() -> None:
    misplaced: Any = injecting(weather)
    with pytest.raises(DeclarationError, match="LangChainToolset is a toolset, and no tool"):
        Agent(TestModel(), tools=[misplaced])
