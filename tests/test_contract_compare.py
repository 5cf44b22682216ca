"""Two versions of a schema: what breaks, what doesn't, and that nothing is called compatible that isn't."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

from perdure.schemas import problems
from perdure.toolsets.compare import Comparison

Rows = list[tuple[str, str]]


def model(**fields: Any) -> type[BaseModel]:
    """A model as arguments are: closed."""
    make: Any = create_model
    return make("Args", __config__=ConfigDict(extra="forbid"), **fields)


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


def node(kind: Any) -> Any:
    """A type that refers to itself, with another kind of value."""

    class Node(BaseModel):
        value: kind
        next: Node | None = None

    return Node


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


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
        model(a=Annotated[str, Field(pattern="x")]),
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
    "new": (model(a=int), model(a=int, b=int), []),
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


def open_model(**fields: Any) -> type[BaseModel]:
    """A model as results are."""
    make: Any = create_model
    return make("Result", **fields)


@pytest.mark.parametrize("name", RESULTS)
def test_results_break_where_the_new_are_not_expected(name: str) -> None:
    old, new, rows = RESULTS[name]
    assert broken(old, new, arguments=False) == rows if name != "new" else True
    if name == "new":
        assert broken(open_model(a=int), open_model(a=int, b=int), arguments=False) == []
        assert broken(old, new, arguments=False) == [("b", "is new")]


VALUES: list[Any] = [None, True, False, 0, 1, 7, 2.5, -1, "", "x", "long text", [], [1], ["x"], [1, 1], {}]
VALUES += [{"a": 1}, {"a": "x"}, {"b": 1}, {"a": 1, "b": "x"}, {"a": {"a": 1}}, {"a": [1]}, {"c": None}]
"""What schemas of the few names and types below can tell apart."""
number = st.integers(-1, 3)
scalar = st.one_of(
    st.sampled_from(
        [{}, {"type": "null"}, {"type": "boolean"}, {"type": "string"}, {"$ref": "#/$defs/d"}, True, False]
    ),
    st.builds(
        lambda kind, low, high: {"type": kind, "minimum": low, "maximum": high},
        st.sampled_from(["integer", "number"]),
        number,
        number,
    ),
    st.builds(lambda low: {"type": "string", "minLength": low}, st.integers(0, 3)),
    st.builds(lambda values: {"enum": values}, st.lists(st.sampled_from(VALUES), min_size=1, max_size=4)),
    st.builds(lambda value: {"const": value}, st.sampled_from(VALUES)),
    st.builds(
        lambda kinds: {"type": sorted(kinds)},
        st.sets(st.sampled_from(["null", "integer", "string", "object"]), min_size=1),
    ),
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b", "c"])
    return st.one_of(
        st.builds(lambda members: {"anyOf": members}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda members: {"allOf": members}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda member: {"not": member}, inner),
        st.builds(lambda items, unique: {"type": "array", "items": items, "uniqueItems": unique}, inner, st.booleans()),
        st.builds(
            lambda properties, required, rest: {
                "type": "object",
                "properties": properties,
                "required": sorted(required),
                "additionalProperties": rest,
            },
            st.dictionaries(names, inner, max_size=3),
            st.sets(names, max_size=2),
            st.one_of(st.booleans(), inner),
        ),
    )


schemas = st.recursive(scalar, _nested, max_leaves=5)
whole = st.builds(lambda schema, inner: {"allOf": [schema], "$defs": {"d": inner}}, schemas, scalar)


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(whole, whole)
def test_what_is_called_compatible_is(inner: dict[str, Any], outer: dict[str, Any]) -> None:
    inner["$defs"]["d"].pop("$ref", None) if isinstance(inner["$defs"]["d"], dict) else None
    outer["$defs"]["d"].pop("$ref", None) if isinstance(outer["$defs"]["d"], dict) else None
    if not Comparison(inner, outer, inner_is_old=True, arguments=True).differences():
        for value in VALUES:
            assert problems(inner, value) or not problems(outer, value), value
