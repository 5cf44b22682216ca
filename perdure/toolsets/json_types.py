"""Types that survive being written as JSON: what the arguments and results of a tool may be."""

from __future__ import annotations

import collections.abc as abc
import typing
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_ai.tools import GenerateToolJsonSchema

from perdure.contracts import Json
from perdure.errors import DeclarationError

READ_ONCE = (abc.Iterator, abc.AsyncIterator, abc.Awaitable, abc.AsyncIterable, typing.IO)
"""What is used up when it is written down. Subclasses too: generators, coroutines, open files."""


def schema_of(kind: Any, where: str, *, written: bool) -> Json:
    """The JSON Schema of a type, as it is written (a result) or read (arguments).

    Raises `DeclarationError`, naming the type, where Pydantic can't write it as JSON and read it again.
    """
    if (inner := read_once(kind)) is not None:
        raise DeclarationError(f"{where}: {name_of(inner)} can be read once only, so JSON can't hold it; take a list")
    try:
        return TypeAdapter(kind).json_schema(
            mode="serialization" if written else "validation", schema_generator=GenerateToolJsonSchema
        )
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        reason = str(error).splitlines()[0]
        raise DeclarationError(f"{where}: {name_of(kind)} can't be written as JSON and read again: {reason}") from None


def read_once(kind: Any, seen: tuple[Any, ...] = ()) -> Any:
    """The first type in `kind` whose values can be read only once; `None` = there is none."""
    if kind in seen:
        return None
    origin = get_origin(kind) or kind
    if isinstance(origin, type) and issubclass(origin, READ_ONCE):
        return kind
    parts = [*get_args(kind), *_members(origin)]
    return next((found for part in parts if (found := read_once(part, (*seen, kind))) is not None), None)


def _members(kind: Any) -> list[Any]:
    """The types of the fields of a model or dataclass."""
    if not isinstance(kind, type):
        return []
    kind = typing.cast("type[Any]", kind)
    if issubclass(kind, BaseModel):
        return [field.annotation for field in kind.model_fields.values()]
    if not is_dataclass(kind):
        return []
    hints = get_type_hints(kind)
    return [hints[field.name] for field in fields(kind)]


def write_only(schema: Any, path: str = "") -> str | None:
    """The path of the first write-only property of a JSON Schema: a secret, which is written as asterisks."""
    if isinstance(schema, list):
        return next((found for item in typing.cast("list[Any]", schema) if (found := write_only(item, path))), None)
    if not isinstance(schema, dict):
        return None
    properties = typing.cast("dict[str, Any]", schema)
    if properties.get("writeOnly") is True:
        return path or "(root)"
    for name, value in properties.items():
        at = path if name in ("properties", "anyOf", "items", "$defs") else f"{path}.{name}".strip(".")
        if found := write_only(value, at):
            return found
    return None


def name_of(kind: Any) -> str:
    """A type as its author wrote it."""
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind).replace("typing.", "")
