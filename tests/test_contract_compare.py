"""Two versions of a schema: what breaks, where, and what doesn't."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

from perdure.toolsets.compare import Comparison

Rows = list[tuple[str, str]]


def model(**fields: Any) -> type[BaseModel]:
    """A model as arguments are: closed."""
    make: Any = create_model
    return make("Args", __config__=ConfigDict(extra="forbid"), **fields)


def open_model(**fields: Any) -> type[BaseModel]:
    """A model as results are."""
    make: Any = create_model
    return make("Result", **fields)


def broken(old: Any, new: Any, *, arguments: bool = True) -> Rows:
    """What breaks, from a type to another."""
    mode: Literal["validation", "serialization"] = "validation" if arguments else "serialization"
    schemas = [TypeAdapter(kind).json_schema(mode=mode) for kind in (old, new)]
    inner, outer = schemas if arguments else reversed(schemas)
    found = Comparison(inner, outer, inner_is_old=arguments, arguments=arguments).differences()
    return [(difference.at, difference.what) for difference in found]


class Node(BaseModel):
    value: int
    next: Node | None = None


def node(kind: Any) -> type[BaseModel]:
    """A type of the same name that refers to itself, with another kind of value."""
    make: Any = create_model
    made = make("Node", value=kind, next=("Node | None", None))
    made.model_rebuild(_types_namespace={"Node": made})
    return made


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


def upto(most: int) -> Any:
    """A number that is at most this."""
    return Annotated[int, Field(le=most)]


Patterned = Annotated[str, Field(pattern="x")]
Pet = Annotated[Cat | Dog, Field(discriminator="kind")]

ARGUMENTS: dict[str, tuple[Any, Any, Rows]] = {
    "same": (model(a=int), model(a=int), []),
    "new, optional": (model(a=int), model(a=int, b=(int, 1)), []),
    "new, required": (model(a=int), model(a=int, b=int), [("b", "is new, and required")]),
    "gone": (model(a=int, b=(int, 1)), model(a=int), [("b", "is gone")]),
    "became required": (model(a=(int, 1)), model(a=int), [("a", "was optional, is required")]),
    "became optional": (model(a=int), model(a=(int, 1)), []),
    "narrowed": (model(a=float), model(a=int), [("a", "was number, is integer")]),
    "widened": (model(a=int), model(a=float), []),
    "other type": (model(a=int), model(a=str), [("a", "was integer, is string")]),
    "none no more": (model(a=int | None), model(a=int), [("a", "was null, is integer")]),
    "none too": (model(a=int), model(a=int | None), []),
    "of a choice one less": (model(a=Literal["x", "y"]), model(a=Literal["x"]), [("a", 'was "y", is "x"')]),
    "of a choice one more": (model(a=Literal["x"]), model(a=Literal["x", "y"]), []),
    "any text for a choice": (model(a=Literal["x", "y"]), model(a=str), []),
    "a choice for any text": (model(a=str), model(a=Literal["x", "y"]), [("a", 'was string, is "x" | "y"')]),
    "lower": (
        model(a=Annotated[int, Field(le=9)]),
        model(a=Annotated[int, Field(le=5)]),
        [("a", "was maximum 9, is maximum 5")],
    ),
    "higher": (model(a=Annotated[int, Field(le=5)]), model(a=Annotated[int, Field(le=9)]), []),
    "a pattern": (
        model(a=str),
        model(a=Patterned),
        [("a", "was without pattern, is pattern x")],
    ),
    "in a list": (model(a=list[float]), model(a=list[int]), [("a[]", "was number, is integer")]),
    "in a mapping": (model(a=dict[str, float]), model(a=dict[str, int]), [("a.*", "was number, is integer")]),
    "in a model": (model(a=model(b=int)), model(a=model(b=int, c=int)), [("a.c", "is new, and required")]),
    "in itself": (
        node(int),
        node(str),
        [("value", "was integer, is string"), ("next.value", "was integer, is string")],
    ),
    "itself": (Node, node(int), []),
    "a variant more": (model(a=Cat), model(a=Pet), []),
    "a variant less": (model(a=list[Pet]), model(a=list[Cat]), [("a[].kind", 'was "dog", is "cat"')]),
    "anything": (model(a=int), model(a=Any), []),
    "anything no more": (model(a=Any), model(a=int), [("a", "was anything, is integer")]),
    "described": (model(a=int), model(a=Annotated[int, Field(description="A.", title="B")]), []),
    "a tuple": (model(a=tuple[int, str]), model(a=tuple[int, int]), [("a", "prefixItems can't be compared")]),
}

RESULTS: dict[str, tuple[Any, Any, Rows]] = {
    "new": (open_model(a=int), open_model(a=int, b=int), []),
    "new where none may be": (model(a=int), model(a=int, b=int), [("b", "is new")]),
    "gone": (model(a=int, b=int), model(a=int), [("b", "is gone")]),
    "optional and gone": (model(a=int, b=(int, 1)), model(a=int), [("b", "is gone")]),
    "became optional": (model(a=int), model(a=(int, 1)), [("a", "was required, is optional")]),
    "narrowed": (float, int, []),
    "widened": (int, float, [("", "was integer, is number")]),
    "none too": (str, str | None, [("", "was string, is null")]),
    "of a choice one more": (Literal["x"], Literal["x", "y"], [("", 'was "x", is "y"')]),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_break_where_the_old_are_not_taken(name: str) -> None:
    old, new, rows = ARGUMENTS[name]
    assert broken(old, new) == rows


@pytest.mark.parametrize("name", RESULTS)
def test_results_break_where_the_new_are_not_expected(name: str) -> None:
    old, new, rows = RESULTS[name]
    assert broken(old, new, arguments=False) == rows
