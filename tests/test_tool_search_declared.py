"""Searches and namespaces that can't work are refused by the `App`: S2-16 to S2-19. What is found, without a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic_ai import Agent, FunctionToolset, Tool
from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset

from perdure import App, DeclarationError, DurableAgent, ToolPolicy
from perdure.listing import listed
from perdure.toolsets.namespace import namespace, namespace_of
from perdure.toolsets.search import by_namespace
from tests.namespaces import LOCAL, NATIVE, Searching, spaces, tools


def space(name: str, *names: str, id: str = "tools") -> AbstractToolset[Any]:
    return namespace(tools(*names, id=id), name=name, description=f"All of {name}.")


REFUSED: list[tuple[str, list[AbstractToolset[Any]], list[ToolSearch[Any]], str]] = [
    (
        "s2_16_two_searches",
        [tools("look").defer_loading()],
        [ToolSearch(strategy="keywords"), ToolSearch(strategy="keywords", id="another")],
        "has 2 ToolSearch capabilities: a model is offered one search",
    ),
    (
        "s2_17_a_search_that_the_model_lacks",
        [tools("look").defer_loading()],
        [ToolSearch(strategy="bm25")],
        r"\['ToolSearchTool'\] not supported by this model",
    ),
    (
        "s2_17_a_search_that_finds_nothing",
        [tools("look").defer_loading()],
        [ToolSearch(max_results=0)],
        r"max_results=0\) finds none of the hidden tools \['look'\]",
    ),
    ("s2_18_nothing_to_search", [tools("look")], [ToolSearch(strategy="keywords")], "no tool is hidden"),
    ("s2_18_nothing_hidden", [tools("look").defer_loading([])], [ToolSearch(max_results=3)], "no tool is hidden"),
    (
        "s2_19_the_name_of_the_search",
        [tools("search_tools", "look").defer_loading(["look"])],
        [],
        "the tool name 'search_tools' is that of the search",
    ),
    (
        "s2_19_two_namespaces_of_a_name",
        [space("billing", "pay"), space("billing", "refund", id="more")],
        [],
        "two namespaces are named 'billing'",
    ),
    (
        "s2_19_a_namespace_and_a_tool",
        [space("pay", "now"), tools("pay", id="more")],
        [],
        "'pay' is a namespace and a tool",
    ),
    (
        "s2_19_names_that_meet_when_joined",
        [space("a", "b_c"), space("a_b", "c", id="more")],
        [],
        "a_b_c",
    ),
]


@pytest.mark.parametrize(
    ("toolsets", "capabilities", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_s2_16_to_19_what_can_not_be_found_is_refused(
    toolsets: list[AbstractToolset[Any]], capabilities: list[ToolSearch[Any]], message: str
) -> None:
    agent = Agent(Searching(profile=LOCAL).model, name="office", toolsets=toolsets, capabilities=capabilities)
    with pytest.raises(DeclarationError, match=message):
        App(agents=[agent])


def test_s2_17_a_named_search_is_taken_where_every_model_has_it() -> None:
    hidden, bm25 = tools("look").defer_loading(), ToolSearch[Any](strategy="bm25")
    agent = Agent(Searching(profile=NATIVE).model, name="office", toolsets=[hidden], capabilities=[bm25])
    App(agents=[agent])
    with pytest.raises(DeclarationError, match="ToolSearchTool"):
        App(agents=[DurableAgent(agent, models={"other": Searching(profile=LOCAL).model})])


def test_s2_18_what_only_a_run_can_tell_is_not_refused() -> None:
    """A filter, or a `prepare`, may hide a tool or not."""
    late = tools("look").prepared(lambda _, definitions: definitions)
    search = ToolSearch[Any](strategy="keywords")
    App(agents=[Agent(Searching().model, name="office", toolsets=[late], capabilities=[search])])
    App(agents=[Agent(Searching().model, name="office", toolsets=[tools("look")])])


def test_a_policy_may_be_for_the_search_where_there_is_one() -> None:
    policies = {"search_tools": ToolPolicy(timeout=5)}
    hidden, shown = tools("look").defer_loading(), tools("look")
    App(agents=[DurableAgent(Agent(Searching().model, name="office", toolsets=[hidden]), policies=policies)])
    with pytest.raises(DeclarationError, match="'search_tools' matches no tool"):
        App(agents=[DurableAgent(Agent(Searching().model, name="office", toolsets=[shown]), policies=policies)])


@pytest.mark.parametrize("name", ["", "two words", "-a", "__", "x" * 41])
def test_s2_15_a_namespace_has_the_beginning_of_a_tools_name(name: str) -> None:
    with pytest.raises(DeclarationError, match="is not 1 to 40"):
        namespace(tools("look"), name=name, description="Something.")


def test_s2_15_a_namespace_says_what_it_is_for() -> None:
    with pytest.raises(DeclarationError, match="say in words"):
        namespace(tools("look"), name="billing", description=" ")


def test_s2_15_a_namespaces_tools_need_not_be_hidden() -> None:
    (shown,) = listed(namespace(tools("pay"), name="billing", description="Payments.", hidden=False)) or []
    assert (shown.name, shown.defer_loading, namespace_of(shown)) == ("billing_pay", False, "billing")
    silent = FunctionToolset[Any]([Tool(lambda: "x", name="pay", description="")], id="silent")
    (bare,) = listed(namespace(silent, name="billing", description="Payments.")) or []
    assert bare.description == "Part of billing: Payments."


def found(*queries: str, before: frozenset[str] = frozenset()) -> list[str]:
    """What `by_namespace` finds among the namespaces and a plain tool."""
    known = [tool for toolset in spaces([]) for tool in listed(toolset) or []]
    plain = ToolDefinition(name="holiday_calendar", description="When employees have a holiday.")
    ctx = cast("Any", SimpleNamespace(discovered_tool_names=set(before)))
    return by_namespace(ctx, queries, [*known, plain])


FINDS: list[tuple[tuple[str, ...], list[str]]] = [
    (("Billing",), ["billing_invoice", "billing_refund"]),
    (("billing refund",), ["billing_refund", "billing_invoice"]),
    (("parcels and where they are",), ["shipping_track", "shipping_relabel"]),
    (("employees holidays",), ["staff_vacation", "staff_payslip"]),
    (("holiday employees",), ["holiday_calendar", "staff_vacation", "staff_payslip"]),
    (("track", "invoice"), ["shipping_track", "billing_invoice"]),
    (("staff billing",), ["billing_invoice", "billing_refund", "staff_vacation", "staff_payslip"]),
    (("zebra",), []),
    ((" ", "..."), []),
    ((), []),
]


@pytest.mark.parametrize(("queries", "names"), FINDS, ids=[" / ".join(row[0]) or "none" for row in FINDS])
def test_s2_15_what_by_namespace_finds(queries: tuple[str, ...], names: list[str]) -> None:
    assert found(*queries) == names


def test_s2_15_what_was_found_before_comes_last() -> None:
    assert found("billing", before=frozenset({"billing_invoice"})) == ["billing_refund", "billing_invoice"]
