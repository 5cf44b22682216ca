"""Hidden tools, namespaces and the search for them: S2-14, S2-15."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.messages import ToolCallPart

from perdure.toolsets.namespace import namespaces
from perdure.toolsets.search import by_namespace
from tests.equality_cases.base import Case, Ran, call, calls, case, simple
from tests.equality_cases.plain import difference
from tests.namespaces import LOCAL, NATIVE, search, searched, spaces


def but_withheld(ran: Ran) -> Ran:
    """Without the hidden tools of requests that no provider was sent: perdure lists one of each namespace."""
    requests = deepcopy(ran.requests)
    for request in requests:
        parameters = request["parameters"]
        shown = {name: how for name, how in parameters["tool_visibility"].items() if how != "withheld"}
        parameters["tool_visibility"] = shown
        parameters["function_tools"] = [tool for tool in parameters["function_tools"] if tool["name"] in shown]
    return replace(ran, requests=requests)


def equal_but_withheld(plainly: Ran, durably: Ran) -> None:
    """Equal are all that a provider is sent, and everything else."""
    one, other = but_withheld(plainly), but_withheld(durably)
    assert one.error == other.error
    for name in ("requests", "messages", "saw", "output", "usage"):
        assert difference(getattr(other, name), getattr(one, name), name) == []


def office(*turns: Any, **options: Any) -> Case:
    """An agent with namespaces, for a model that searches with a tool."""
    saw: list[Any] = []
    options = {"profile": LOCAL, "toolsets": spaces(saw), "differs": equal_but_withheld, **options}
    return simple(*turns, "done", saw=saw, **options)


@case
def s2_14_found_in_a_namespace_and_called() -> Case:
    return office(search("billing"), {"billing_refund": {"n": 1}}, {"billing_invoice": {"n": 2}})


@case
def s2_14_hidden_tools_called_before_and_beside_their_search() -> Case:
    beside = calls(call("staff_payslip"), call("search_tools", {"queries": ["payslip"]}), call("billing_refund"))
    return office({"billing_refund": {}}, beside, {"staff_payslip": {}}, retries=3)


@case
def s2_14_hidden_tools_called_again_and_again_end_the_run() -> Case:
    return office({"billing_refund": {}}, {"billing_refund": {}}, {"billing_refund": {}}, retries=1)


@case
def s2_14_unknown_tools_beside_hidden_ones() -> Case:
    turn = calls(call("billing_nothing"), call("billing_refund"), call("nothing"))
    return office(turn, search("refund"), {"billing_refund": {}}, retries=3)


@case
def s2_14_searches_that_find_nothing() -> Case:
    return office(search("zebra"), search(""), {"search_tools": {"queries": 7}}, search("track"), retries=3)


@case
def s2_15_searched_by_namespace() -> Case:
    strategy = ToolSearch[Any](strategy=by_namespace, max_results=2)
    turns: list[Any] = [search("staff", "billing"), search("staff"), {"staff_vacation": {}, "staff_payslip": {}}]
    return office(*turns, toolsets=[namespaces(*spaces([]))], capabilities=[strategy])


@case
def s2_14_found_by_the_provider_in_the_same_response() -> Case:
    turn = [*searched("billing_refund"), ToolCallPart("billing_refund", {"n": 1})]
    return office(turn, {"billing_refund": {"n": 2}}, profile=NATIVE, differs=None)
