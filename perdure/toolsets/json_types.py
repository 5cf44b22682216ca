"""Types that survive being written as JSON: what the arguments and results of a tool may be."""

from __future__ import annotations

import collections.abc as abc
import typing
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
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


def closed(model: type[BaseModel]) -> type[BaseModel]:
    """The model, which refuses unknown fields where its `model_config` doesn't say what becomes of them."""
    config = ConfigDict(extra=model.model_config.get("extra") or "forbid")
    body = {"model_config": config, "__module__": model.__module__, "__doc__": model.__doc__}
    make: Any = type(model)
    return make(model.__name__, (model,), body)


def read_once(kind: Any, *, argument: bool = False) -> Any:
    """The first type in `kind` whose values can be read only once; `None` = there is none."""
    for inner in _types_in(kind):
        origin = get_origin(inner) or inner
        if argument and origin is abc.Iterable:  # Pydantic reads such an argument as it is asked for items
            return inner
        if isinstance(origin, type) and issubclass(origin, READ_ONCE):
            return inner
    return None


def lost_in(kind: Any) -> str:
    """Which field of a model in `kind` is lost when it is written as JSON and read again; empty = none."""
    for model in _types_in(kind):
        if isinstance(model, type) and issubclass(model, BaseModel):
            for name, field in model.model_fields.items():
                if field.exclude:
                    return f"{model.__name__}.{name} is excluded when it is written"
                if not _same_name(model, name, field):
                    return f"{model.__name__}.{name} is written under another name than it is read"
    return ""


def _same_name(model: type[BaseModel], name: str, field: FieldInfo) -> bool:
    """Whether what a field is written as is among what it is read as."""
    alias = field.validation_alias
    config = model.model_config
    read = [name] if alias is None else [alias] if isinstance(alias, str) else getattr(alias, "choices", [])
    by_name = config.get("validate_by_name") or config.get("populate_by_name")
    return (field.serialization_alias or name) in [*read, *([name] if by_name else [])]


def _types_in(kind: Any, seen: set[type[Any]] | None = None) -> Iterator[Any]:
    """The type and all that are in it: of its parts, and of the fields of models and dataclasses."""
    seen = set() if seen is None else seen
    yield kind
    origin = get_origin(kind) or kind
    parts = list(get_args(kind))
    if isinstance(origin, type) and origin not in seen:
        seen.add(origin)
        parts += _members(origin)
    for part in parts:
        yield from _types_in(part, seen)


def _members(kind: type[Any]) -> list[Any]:
    """The types of the fields of a model or dataclass."""
    if issubclass(kind, BaseModel):
        return [field.annotation for field in kind.model_fields.values()]
    return list(hints_of(kind).values()) if is_dataclass(kind) or typing.is_typeddict(kind) else []


def hints_of(described: Any) -> dict[str, Any]:
    """The types of a function's parameters and result, or of a class's fields; empty where they can't be read."""
    try:
        return get_type_hints(described, include_extras=True)
    except (NameError, TypeError):  # names that only a type checker knows
        return {}


def check_readable(schema: Any, where: str, server: str) -> None:
    """Raise `DeclarationError` for a write-only argument; `server` is what could look the secret up."""
    if secret := write_only(schema):
        raise DeclarationError(
            f"{where}: the argument {secret!r} is write-only (a secret): written as JSON it becomes asterisks, and "
            f"asterisks are what would run. Pass a reference and look the secret up in the {server}."
        )


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
