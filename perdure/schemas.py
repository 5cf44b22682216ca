"""JSON Schema and types: whether a value is what was declared. By jsonschema and Pydantic, on workers only."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, cast

from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import to_json
from referencing import Registry
from referencing.exceptions import Unresolvable

from perdure.contracts import Json, canonical, cut, validation_problems
from perdure.errors import DeclarationError

MAX_PROBLEMS = 10
MAX_PROBLEM = 300


def check_schema(schema: Json, where: str) -> None:
    """Raise `DeclarationError` unless `schema` is a JSON Schema (of its own `$schema`, else draft 2020-12)."""
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        raise DeclarationError(f"{where} isn't a JSON Schema: {error.message} (at {error.json_path})") from None
    except RecursionError:
        raise DeclarationError(f"{where} is nested too deeply to be read") from None


def check_type(declared: Any, where: str) -> None:
    """Raise `DeclarationError` unless `declared` is a JSON Schema or a type that Pydantic can read JSON as."""
    if isinstance(declared, dict):
        check_schema(cast("Json", declared), where)
    elif reason := no_type(declared):
        raise DeclarationError(f"{where}={declared!r} is neither a JSON Schema nor a type: {reason}")


def no_type(declared: Any) -> str:
    """Why it is no type that Pydantic reads; empty = it is one. Pydantic takes text for the name of a type that
    is to come, an instance of a model for its class, and a dictionary for a schema of its core."""
    if isinstance(declared, str):
        return "it is text; give the type itself"
    if isinstance(declared, dict):
        return "it is a dictionary; give a type: a model, dataclass or TypedDict"
    if isinstance(declared, BaseModel) or (is_dataclass(declared) and not isinstance(declared, type)):
        return f"it is a value; give the type, {type(declared).__name__}"
    try:
        TypeAdapter(declared)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        return str(error).splitlines()[0]
    return ""


def problems(declared: Any, value: Any) -> str:
    """What is wrong with `value` (JSON) by a JSON Schema or a type, in one line; empty = nothing."""
    if isinstance(declared, dict):
        return _schema_problems(cast("Json", declared), value)
    try:
        TypeAdapter(declared).validate_json(to_json(value))
    except ValidationError as error:
        return validation_problems(error, "value")
    return ""


def _schema_problems(schema: Json, value: Any) -> str:
    try:
        found = sorted(_validator(canonical(schema)).iter_errors(value), key=lambda error: error.json_path)
    except Unresolvable as error:
        return f"the schema refers to {error.ref!r}, which isn't in it; nothing is fetched"
    rows = [f"{error.json_path}: {cut(error.message, MAX_PROBLEM)}" for error in found[:MAX_PROBLEMS]]
    return "; ".join(rows + ([f"and {len(found) - MAX_PROBLEMS} more"] if len(found) > MAX_PROBLEMS else []))


@lru_cache(maxsize=500)
def _validator(schema: bytes) -> Validator:
    parsed = json.loads(schema)
    return validator_for(parsed)(parsed, registry=Registry())
