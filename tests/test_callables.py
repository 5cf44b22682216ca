"""What can be called is looked at alike wherever an app gives it: a function, a method, a `partial`, an object."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from perdure import App, DeclarationError
from perdure.toolsets.callables import code_of
from perdure.toolsets.contract import ToolContract
from perdure.toolsets.handler import handler_of


class Order(BaseModel):
    order_id: str


async def tell(prefix: str, notification: Any) -> None:
    """A notifier, once it has a prefix."""


class Teller:
    async def __call__(self, notification: Any) -> None: ...

    async def tell(self, notification: Any) -> None: ...


class Yielding:
    def __call__(self, order_id: str) -> Iterator[str]:
        yield order_id


class Looking:
    async def __call__(self, place: int, order_id: str) -> str:
        return order_id


CONTRACT = ToolContract("find", "Find an order.", Order, str)


@pytest.mark.parametrize(
    "notifier",
    [Teller(), Teller().tell, partial(tell, "!"), partial(Teller())],
    ids=["object", "method", "partial", "partial of an object"],
)
def test_an_async_callable_of_any_kind_is_taken(notifier: Any) -> None:
    assert App(agents=[Agent(TestModel(), name="small")], notifier=notifier).notifier is notifier


@pytest.mark.parametrize("notifier", [print, partial(print, 1), Yielding(), 5], ids=["print", "partial", "object", "5"])
def test_what_is_not_async_is_refused(notifier: Any) -> None:
    with pytest.raises(DeclarationError, match="isn't an async function"):
        App(agents=[Agent(TestModel(), name="small")], notifier=notifier)


def test_a_handler_may_be_a_partial_of_an_object() -> None:
    assert handler_of(CONTRACT, partial(Looking(), 1)).is_async
    with pytest.raises(DeclarationError, match="yields; a tool has one result"):
        handler_of(CONTRACT, partial(Yielding()))


def test_a_partial_of_a_partial_runs_what_is_inside() -> None:
    outer = partial(partial(tell, "!"))
    assert code_of(outer) is tell
    assert code_of(5) == 5
