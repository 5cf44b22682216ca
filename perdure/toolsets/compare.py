"""Whether what one JSON Schema allows is allowed by another one: how the arguments and results of a tool have changed.

It reads what Pydantic writes: types, bounds, objects, arrays, unions, enumerations, local references. What it can't
compare (`not`, `if`, `patternProperties`, two different regular expressions, `oneOf` without a discriminator, …) counts
as broken unless it is the same on both sides: it never calls compatible what isn't, and may call broken what is not. A
value that several members of a union share is one such case. An object with properties that doesn't speak of further
ones has no further ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from perdure.contracts import Json, canonical
from perdure.schemas import problems

REMARKS = {
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "discriminator"),
    *("$comment", "$defs", "$schema", "$id"),
}
"""Keywords that don't change what is allowed."""
LEAST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
MOST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
SAME = ("pattern", "format", "contentEncoding", "contentMediaType", "multipleOf", "uniqueItems")
"""Keywords that allow less the moment they are there, or are others."""
READ = {"type", "const", "properties", "required", "additionalProperties", "items", *LEAST, *MOST, *SAME}
MOST_HOPS = 20
"""References that lead to a reference."""


@dataclass(frozen=True)
class Difference:
    """One difference between two schemas."""

    at: str
    """Where, as a path of names; empty = the whole."""
    what: str


@dataclass
class Comparison:
    """What `inner` allows and `outer` doesn't: whole schemas, each with the definitions that it refers to."""

    inner: Json
    outer: Json
    inner_is_old: bool
    arguments: bool
    """Whether it is about arguments, and not about a result. Only the words, and whose new properties count, differ."""
    _open: list[bytes] = field(default_factory=lambda: [])

    def differences(self) -> list[Difference]:
        """All of them, in the order of the schemas; empty = whatever `inner` allows `outer` allows."""
        return list(dict.fromkeys(self._whole(self.inner, self.outer, "")))

    def _whole(self, inner: Any, outer: Any, at: str) -> Iterator[Difference]:
        key = canonical([inner, outer])
        if key in self._open:
            return  # a type that refers to itself: it is being compared
        self._open.append(key)
        allowed = list(_members(outer, self.outer))
        for member in _members(inner, self.inner):
            if not any(self._fits(member, other) for other in allowed):
                yield from self._misfit(member, allowed, at)
        self._open.pop()

    def _fits(self, inner: Json, outer: Json) -> bool:
        return not list(self._single(inner, outer, ""))

    def _misfit(self, inner: Json, allowed: list[Json], at: str) -> Iterator[Difference]:
        """Why a member of a union is none of the other's: by the one that is most like it, or by them all."""
        alike = [outer for outer in allowed if outer.get("type") == inner.get("type")]
        if len(alike) == 1 and "const" not in inner:
            yield from self._single(inner, alike[0], at)
        else:
            yield self._said(at, _shown(inner), " | ".join(_shown(outer) for outer in allowed) or "nothing")

    def _single(self, inner: Json, outer: Json, at: str) -> Iterator[Difference]:
        if "const" in inner:
            if problems({**outer, "$defs": self.outer.get("$defs", {})}, inner["const"]):
                yield self._said(at, _shown(inner), _shown(outer))
            return
        if "const" in outer or outer.get("type", inner.get("type")) not in _types(inner):
            yield self._said(at, _shown(inner), _shown(outer))
            return
        if unread := [name for name in outer if name not in READ | REMARKS and not self._same(name, inner, outer)]:
            yield Difference(at, f"{', '.join(unread)} can't be compared")
        yield from self._bounds(inner, outer, at)
        yield from self._properties(inner, outer, at)
        if "items" in outer:
            yield from self._whole(inner.get("items", {}), outer["items"], f"{at}[]")

    def _same(self, name: str, inner: Json, outer: Json) -> bool:
        """Whether a keyword that isn't read means the same on both sides."""
        refers = b'"$ref"' in canonical(outer[name])
        return inner.get(name) == outer[name] and not (refers and self.inner.get("$defs") != self.outer.get("$defs"))

    def _bounds(self, inner: Json, outer: Json, at: str) -> Iterator[Difference]:
        for name in outer:
            mine, other = inner.get(name), outer[name]
            if name not in (*LEAST, *MOST, *SAME) or other is False:
                continue
            if mine is None or (mine < other if name in LEAST else mine > other if name in MOST else mine != other):
                yield self._said(at, _bound(name, mine), _bound(name, other))

    def _properties(self, inner: Json, outer: Json, at: str) -> Iterator[Difference]:
        mine, others = inner.get("properties", {}), outer.get("properties", {})
        missing = {*outer.get("required", [])} - {*inner.get("required", [])}
        for name in [*others, *sorted(missing - others.keys())]:
            if name in missing:
                yield Difference(_join(at, name), self._required(name in mine))
            elif name not in mine and not self.arguments:
                yield Difference(_join(at, name), "is new" if self.inner_is_old else "is gone")
            elif name in mine:
                yield from self._whole(mine[name], others[name], _join(at, name))
        for name in mine.keys() - others.keys():
            yield from self._further(mine[name], outer, _join(at, name), named=True)
        rest = True if "patternProperties" in inner else inner.get("additionalProperties", not mine)
        if rest is not False:
            for name in others.keys() - mine.keys():
                yield from self._whole(rest, others[name], _join(at, name))
            yield from self._further(rest, outer, _join(at, "*"), named=False)

    def _further(self, inner: Any, outer: Json, at: str, *, named: bool) -> Iterator[Difference]:
        """A property, or all properties, that `outer` doesn't name. One that old arguments name is missed."""
        rest = outer.get("additionalProperties", True)
        silent = named and "additionalProperties" not in outer and "properties" in outer
        if rest is False or (silent and self.arguments and self.inner_is_old):
            yield Difference(at, "is gone" if self.inner_is_old else "is new")
        else:
            yield from self._whole(inner, rest, at)

    def _required(self, is_there: bool) -> str:
        if self.inner_is_old:
            new = "is new, and required" if self.arguments else "is new"
            return "was optional, is required" if is_there else new
        return "was required, is optional" if is_there else "is gone"

    def _said(self, at: str, inner: str, outer: str) -> Difference:
        old, new = (inner, outer) if self.inner_is_old else (outer, inner)
        return Difference(at, f"was {old}, is {new}")


def _members(schema: Any, root: Json) -> Iterator[Json]:
    """The schema as a union of schemas without references and unions on their top level."""
    if schema is False:
        return
    resolved = _resolved({} if schema is True else schema, root)
    union = "anyOf" if "anyOf" in resolved else "oneOf" if "discriminator" in resolved and "oneOf" in resolved else ""
    if union and not set(resolved) - REMARKS - {union}:
        for member in resolved[union]:
            yield from _members(member, root)
    elif "enum" in resolved:
        beside = {name: value for name, value in resolved.items() if name != "enum"}
        yield from ({**beside, "const": value} for value in resolved["enum"])
    elif isinstance(resolved.get("type"), list):
        yield from ({**resolved, "type": kind} for kind in resolved["type"])
    else:
        yield resolved


def _resolved(schema: Json, root: Json) -> Json:
    """The schema with what its reference, or its only `allOf`, leads to."""
    for _ in range(MOST_HOPS):
        inner: Any = None
        if "$ref" in schema:
            inner = root.get("$defs", {}).get(str(schema["$ref"]).removeprefix("#/$defs/"))
        elif len(schema.get("allOf", [])) == 1:
            inner = schema["allOf"][0]
        if not isinstance(inner, dict) or set(schema) - REMARKS - {"$ref", "allOf"}:
            break
        schema = cast("Json", inner)
    return schema


def _types(schema: Json) -> tuple[Any, ...]:
    kind = schema.get("type")
    return (kind, "number") if kind == "integer" else (kind,)


def _bound(name: str, value: Any) -> str:
    return f"{name} {value}" if value is not None else f"without {name}"


def _join(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _shown(schema: Json) -> str:
    """A schema in a word or two."""
    if "const" in schema:
        return canonical(schema["const"]).decode()
    return str(schema.get("type") or schema.get("$ref") or next(iter(set(schema) - REMARKS), "anything"))
