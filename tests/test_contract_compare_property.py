"""Nothing is called compatible that isn't: for drawn pairs of schemas, by jsonschema and all values of a list."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.contracts import Json
from perdure.schemas import problems
from perdure.toolsets.compare import Comparison

SCALARS: list[Any] = [None, True, False, 0, 1, 7, 2.5, -1, "", "x", "long text"]
VALUES: list[Any] = [
    *(*SCALARS, [], [1], ["x"], [1, 1], {}, {"a": 1}, {"a": "x"}, {"b": 1}, {"a": 1, "b": "x"}, {"a": None}),
    *({"a": {"a": 1}}, {"a": [1]}, {"c": None}, {"b": "x"}, {"c": 1}, {"a": 1, "c": 1}, {"b": None}, {"c": "x"}),
]
"""What schemas of the few names and types below can tell apart."""
KINDS = ("any", "never", "type", "types", "ref", "bound", "length", "enum", "const")
DEEP = ("object", "object", "object", "array", "anyOf", "allOf", "not")


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> Any:
    """A schema, or one of JSON Schema's two words for one."""
    kind = draw(st.sampled_from((*KINDS, *DEEP) if depth else KINDS))
    inner = schemas(depth=depth - 1)
    match kind:
        case "any" | "never":
            return kind == "any"
        case "type":
            return {"type": draw(st.sampled_from(["null", "boolean", "string", "integer", "number", "object"]))}
        case "types":
            return {"type": draw(st.lists(st.sampled_from(["null", "integer", "string"]), min_size=1, unique=True))}
        case "ref":
            return {"$ref": "#/$defs/d"}
        case "bound":
            return {"type": "integer", "minimum": draw(st.integers(-1, 2)), "maximum": draw(st.integers(0, 8))}
        case "length":
            return {"type": "string", "minLength": draw(st.integers(0, 3))}
        case "enum":
            return {"enum": draw(st.lists(st.sampled_from(SCALARS), min_size=1, max_size=4))}
        case "const":
            return {"const": draw(st.sampled_from(VALUES))}
        case "array":
            return {"type": "array", "items": draw(inner), "uniqueItems": draw(st.booleans())}
        case "not":
            return {"not": draw(inner)}
        case "object":
            return draw(objects(inner))
        case _:
            return {kind: draw(st.lists(inner, min_size=1, max_size=2))}


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Json:
    """A schema of objects that says what becomes of properties that it doesn't name."""
    names = st.sampled_from(["a", "b", "c"])
    return {
        "type": "object",
        "properties": draw(st.dictionaries(names, inner, max_size=3)),
        "required": sorted(draw(st.sets(names, max_size=1))),
        "additionalProperties": draw(st.one_of(st.booleans(), inner)),
    }


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Json, Json]:
    """Two whole schemas, often alike: the second is the first with another part."""
    whole: list[Json] = []
    first, definition = draw(schemas()), draw(schemas(depth=0).filter(lambda schema: "$ref" not in str(schema)))
    for _ in range(2):
        more = draw(objects(schemas(depth=1))) if isinstance(first, dict) and whole else {}
        part = {name: more[name] for name in draw(st.sets(st.sampled_from(sorted(more))))} if more else {}
        whole.append({"allOf": [{**first, **part} if part else first], "$defs": {"d": definition}})
        if draw(st.booleans()):
            first, definition = draw(schemas()), draw(schemas(depth=0).filter(lambda one: "$ref" not in str(one)))
    return whole[0], whole[1]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(pairs())
def test_what_is_called_compatible_is(pair: tuple[Json, Json]) -> None:
    inner, outer = pair
    if not Comparison(inner, outer, inner_is_old=True, arguments=True).differences():
        for value in VALUES:
            assert problems(inner, value) or not problems(outer, value), value
