"""What a tool takes whose handler is elsewhere: a function that declares it and can't be called, and how its arguments
are sent."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, NoReturn, cast

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import Tool

from perdure.errors import DeclarationError

PLAIN = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class Shape:
    """How the arguments of a call are sent: one object, each by its place, or none."""

    positional: list[str]
    no_arguments: bool


def of_function(function: Callable[..., Any], where: str, *, bound: bool = False) -> Callable[..., Any]:
    """A function with the signature and docstring of `function`, that refuses to be called.

    `bound`: its first parameter is left out (the `self` of a method that isn't bound).
    """
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[1 if bound else 0 :]
    for parameter in parameters:
        if parameter.kind not in PLAIN:
            raise DeclarationError(
                f"{where}: the parameter {parameter.name!r} of {function.__qualname__} is "
                f"{parameter.kind.description}: Temporal passes arguments by their place"
            )

    @wraps(function)
    async def elsewhere(*_: Any, **__: Any) -> NoReturn:
        raise _not_here(where)

    cast("Any", elsewhere).__signature__ = signature.replace(parameters=parameters)
    return elsewhere


def of_model(model: Any, result: Any, name: str, where: str) -> Callable[..., Any]:
    """A function that takes one `model` and can't be called."""
    parameter = "input"
    while parameter in fields_of(model, where):
        parameter += "_"

    async def elsewhere(*_: Any, **__: Any) -> NoReturn:
        raise _not_here(where)

    returns = Any if result is None or isinstance(result, dict) else result
    one = Parameter(parameter, Parameter.POSITIONAL_OR_KEYWORD, annotation=model)
    elsewhere.__name__ = elsewhere.__qualname__ = name
    elsewhere.__annotations__ = {parameter: model, "return": returns}
    cast("Any", elsewhere).__signature__ = Signature([one], return_annotation=returns)
    return elsewhere


def shape_of(tool: Tool[Any], where: str) -> Shape:
    """How the calls of a tool are sent. Raises `DeclarationError` where that isn't clear."""
    schema = tool.function_schema
    if schema.takes_ctx:
        raise DeclarationError(f"{where}: it can't take a RunContext: no code of the agent runs it")
    names = list(inspect.signature(tool.function).parameters)
    single = schema.single_arg_name
    if single is None:
        return Shape(names, not names)
    if single in with_fields(schema.json_schema).get("properties", {}):
        raise DeclarationError(
            f"{where}: its parameter {single!r} has the name of a field of its own type, so what the model sends can't "
            "be told apart: give one of them another name"
        )
    return Shape([], False)


def fields_of(model: Any, where: str) -> dict[str, Any]:
    """The JSON Schemas of the fields of `model`. Raises `DeclarationError` unless it is a type with fields."""
    try:
        schema = with_fields(TypeAdapter(model).json_schema())
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        reason = str(error).splitlines()[0]
        raise DeclarationError(f"{where}: input_model={model!r} isn't a type that Pydantic reads: {reason}") from None
    if not isinstance(model, type) or schema.get("type") != "object":
        raise DeclarationError(f"{where}: input_model={model!r} must be a model, dataclass or TypedDict")
    return schema.get("properties", {})


def with_fields(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON Schema with its fields at the top: that of a type that refers to itself has them in its `$defs`."""
    return schema["$defs"][schema["$ref"].rsplit("/", 1)[-1]] if "$ref" in schema else schema


def _not_here(where: str) -> UserError:
    return UserError(f"{where}: only a run of AgentWorkflow can make this call, and it schedules it itself")
