"""A contract is data, and what serves it agrees with it or is refused before any worker polls."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ToolReturn
from pydantic_ai.models.test import TestModel

from perdure import App, DeclarationError
from perdure.toolsets.contract import ToolContract
from perdure.toolsets.contract_toolset import ContractToolset
from tests.orders import ORDER, Order, Receipt, fields


class Named(Order):
    pass


def serve(function: Any, contract: ToolContract = ORDER) -> ContractToolset:
    """A toolset in which the function serves the contract."""
    toolset = ContractToolset([contract], id="orders")
    toolset.handle(contract, function)
    return toolset


def app(toolset: ContractToolset) -> App:
    make: Any = Agent
    return App(agents=[make(TestModel(), name="small", toolsets=[toolset])])


def test_s3_01_a_contract_is_data_without_what_serves_it() -> None:
    exported = json.loads(json.dumps(ORDER.export()))
    assert exported == {
        "name": "order",
        "version": "2",
        "description": "Order something.",
        "input": {
            "type": "object",
            "properties": {
                "order_id": {"type": "string"},
                "count": {"type": "integer", "default": 1},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            },
            "required": ["order_id"],
            "additionalProperties": False,
        },
        "output": {
            "title": "Receipt",
            "type": "object",
            "properties": {"cents": {"type": "integer"}},
            "required": ["cents"],
        },
    }
    assert ORDER.tool_definition().parameters_json_schema == exported["input"]


def test_s3_02_a_contract_that_nothing_serves_is_refused_by_the_app() -> None:
    toolset = ContractToolset([ORDER], id="orders")
    with pytest.raises(DeclarationError, match=r"toolset 'orders' has contracts that nothing serves: \['order'\]"):
        app(toolset)
    toolset.external(ORDER)
    app(toolset)
    with pytest.raises(DeclarationError, match="'order' is served already, in toolset 'orders'"):
        toolset.external(ORDER)


def keywords(**fields: Any) -> Receipt:
    raise NotImplementedError


def defaults(order_id: str, count: int = 5, note: str | None = None, *args: Any) -> Receipt:
    raise NotImplementedError


async def model(ctx: RunContext[Any], order: Order) -> ToolReturn[Receipt]:
    raise NotImplementedError


def base(anything: Order) -> Mapping[str, int]:
    raise NotImplementedError


class Callable_:
    def __call__(self, order: Order) -> Any:
        raise NotImplementedError


def unannotated(order_id, count, note):  # type: ignore[no-untyped-def]
    raise NotImplementedError


def wider(order_id: object, count: float, note: Any) -> dict[str, int]:
    raise NotImplementedError


AGREEING: list[Any] = [fields, keywords, model, base, Callable_(), unannotated, wider, partial(fields, note="x")]


@pytest.mark.parametrize("function", AGREEING, ids=lambda function: getattr(function, "__name__", "object"))
def test_a_handler_that_agrees_is_accepted(function: Any) -> None:
    app(serve(function))
    serve(base, ToolContract("named", "Named.", Named, Receipt))


def missing(order_id: str) -> Receipt:
    raise NotImplementedError


def more(order_id: str, count: int, note: str | None, colour: str) -> Receipt:
    raise NotImplementedError


def other(receipt: Receipt) -> Receipt:
    raise NotImplementedError


def by_place(order_id: str, count: int, note: str | None, /) -> Receipt:
    raise NotImplementedError


BOTH = r"the contract's fields are \['count', 'note', 'order_id'\]"
NAMES: list[tuple[Any, str]] = [
    (missing, r"'missing' takes \['order_id'\], " + BOTH),
    (more, r"takes \['colour', 'count', 'note', 'order_id'\], " + BOTH),
    (other, r"takes \['receipt'\], " + BOTH + ".* annotated as Order"),
    (by_place, r"arguments are passed by name, which \['order_id', 'count', 'note'\] don't take"),
    (defaults, r"arguments are passed by name, which \['args'\] don't take"),
]


@pytest.mark.parametrize(("function", "message"), NAMES, ids=lambda value: getattr(value, "__name__", None))
def test_s3_04_a_signature_that_differs_names_both_sets(function: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        serve(function)


def not_none(order_id: str, count: int, note: str) -> Receipt:
    raise NotImplementedError


def none_too(order_id: str | None, count: int, note: str | None) -> Receipt:
    raise NotImplementedError


def number(order_id: int, count: int, note: str | None) -> Receipt:
    raise NotImplementedError


TYPES: list[tuple[Any, str]] = [
    (not_none, "takes 'note' as str, the contract has it as str | None"),
    (none_too, "takes 'order_id' as str | None, the contract has it as str"),
    (number, "takes 'order_id' as int, the contract has it as str"),
]


@pytest.mark.parametrize(("function", "message"), TYPES, ids=lambda value: getattr(value, "__name__", None))
def test_s3_05_none_is_taken_on_both_sides_or_on_neither(function: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message.replace("|", r"\|")):
        serve(function)


def text(order: Order) -> str:
    raise NotImplementedError


def another(order: Order) -> Order:
    raise NotImplementedError


def yields(order: Order) -> Iterator[int]:
    yield 1


async def yields_too(order: Order) -> AsyncIterator[int]:
    yield 1


def promises(order: Order) -> Awaitable[Receipt]:
    raise NotImplementedError


RESULTS: list[tuple[Any, str]] = [
    (text, "handler 'text' returns str, the contract says Receipt"),
    (another, "returns Order, the contract says Receipt"),
    (yields, "'yields' yields; a tool has one result"),
    (yields_too, "'yields_too' yields"),
    (promises, "let it be async"),
    ("text", "is str, which can't be called"),
]


@pytest.mark.parametrize(("function", "message"), RESULTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_handler_of_another_result_is_refused(function: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        serve(function)


def test_types_that_only_pydantic_can_compare_are_accepted() -> None:
    class Many(BaseModel):
        rows: list[int]
        way: Literal["a", "b"]
        call: Mapping[str, int]

    def function(rows: Sequence[int], way: str, call: Any) -> list[dict[str, int]]:
        raise NotImplementedError

    serve(function, ToolContract("many", "Many.", Many, list[Receipt]))
