"""Arguments of LangChain's tools: which are hidden from the model, and what is told of bad ones. Imported by
`langchain` alone.

What is injected may be a secret. Pydantic shows the value beside each mistake, and where an argument is missing or the
whole is wrong it shows all of them: so nothing of Pydantic's own report reaches the model where anything is hidden.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, cast

from langchain_core.tools import BaseTool, InjectedToolCallId
from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_ai import ModelRetry
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError
from temporalio.exceptions import ApplicationError

from perdure.contracts import Json, validation_problems
from perdure.errors import DeclarationError
from perdure.toolsets.foreign import refuse_arguments

TOGETHER = "the arguments don't go together"
"""Told instead of the tool's own text on the whole, which may name what is hidden."""
REFUSED = "InjectedArgumentInvalid"
"""The type, in history, of a run that ends since `inject` gave what the tool refuses."""


def model_of(tool: BaseTool) -> type[BaseModel] | None:
    """The tool's own model of its arguments; `None`: it has none, or JSON Schema, and LangChain validates nothing."""
    declared: Any = tool.args_schema
    return declared if isinstance(declared, type) and issubclass(declared, BaseModel) else None


def hidden_of(tool: BaseTool) -> set[str]:
    """The arguments that LangChain injects, by its own reckoning: those of the schema that the model isn't shown, and
    those of the function alone."""
    hidden = set(tool._injected_args_keys)  # pyright: ignore[reportPrivateUsage]
    if (model := model_of(tool)) is not None:
        shown = cast("type[BaseModel]", tool.tool_call_schema)
        hidden |= set(model.model_fields) - set(shown.model_fields)
    return hidden


def ids_of(tool: BaseTool) -> set[str]:
    """Those that are the id of the call, which is known here as there."""
    model = model_of(tool)
    fields = model.model_fields if model is not None else {}
    marked = {name for name, field in fields.items() if any(map(_is_id, field.metadata))}
    return marked | ({"tool_call_id"} & hidden_of(tool))


def _is_id(mark: Any) -> bool:
    return mark is InjectedToolCallId or isinstance(mark, InjectedToolCallId)


def names_of_hidden(tool: BaseTool) -> dict[str, str]:
    """Every name that a hidden argument goes by, aliases too, with the argument."""
    model, hidden = model_of(tool), hidden_of(tool)
    fields = model.model_fields if model is not None else {}
    return {name: own for own in hidden for name in (own, *(_aliases(fields[own]) if own in fields else ()))}


def _aliases(field: FieldInfo) -> Iterable[str]:
    declared = (field.alias, field.validation_alias)
    for alias in (one for each in declared for one in (each.choices if isinstance(each, AliasChoices) else [each])):
        first = alias.path[0] if isinstance(alias, AliasPath) else alias
        if isinstance(first, str):
            yield first


def refuse_async(inject: Mapping[str, Any], id: str) -> None:
    """Raise `DeclarationError` for a function of `inject` that nobody would await."""
    for name, function in inject.items():
        called = getattr(function, "__call__", None)  # noqa: B004
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
            raise DeclarationError(
                f"toolset {id!r}: inject[{name!r}] is async, and nobody awaits it: make it a plain function. What has "
                "to be awaited belongs into the agent's deps"
            )


def given(tool: str, name: str, value: Any) -> Any:
    """What `inject` gave, unless it is a coroutine that a plain function made."""
    if inspect.iscoroutine(value):
        value.close()
        raise _invalid(tool, [name], "is a coroutine, and nobody awaits it")
    return value


def validate(tool: BaseTool, whole: Json) -> None:
    """Ask the model again where the tool's model refuses its arguments, in the tool's words if it has some.

    Raises a non-retryable `ApplicationError` where it refuses what was injected: no model can mend that.
    """
    model = model_of(tool)
    error = None if model is None else _error(model, whole)
    if error is None:
        return
    hidden = names_of_hidden(tool)
    if hidden:
        error = _redacted(tool.name, error, hidden)
    told = tool.handle_validation_error
    if callable(told):
        raise ModelRetry(told(error))
    if isinstance(told, str):
        raise ModelRetry(told)
    refuse_arguments(validation_problems(error, "$"))


def _error(model: type[BaseModel], whole: Json) -> ValidationError | None:
    try:
        model.model_validate(dict(whole))  # a copy: a validator may change it, and LangChain reads it again
    except ValidationError as error:
        return error
    return None


def _redacted(tool: str, error: ValidationError, hidden: Mapping[str, str]) -> ValidationError:
    """The same report without any value, and without a text on the whole. Raises where hidden arguments are wrong."""
    rows = error.errors(include_url=False, include_context=False, include_input=False)
    if wrong := sorted({hidden[str(row["loc"][0])] for row in rows if row["loc"] and row["loc"][0] in hidden}):
        raise _invalid(tool, wrong, "isn't what the tool takes")
    return ValidationError.from_exception_data(error.title, [_row(row) for row in rows], hide_input=True)


def _row(row: ErrorDetails) -> InitErrorDetails:
    text = row["msg"] if row["loc"] else TOGETHER
    kind = PydanticCustomError(cast("Any", row["type"]), cast("Any", text))
    return InitErrorDetails(type=kind, loc=row["loc"], input=None)


def _invalid(tool: str, names: list[str], why: str) -> ApplicationError:
    """An error in the program that names the arguments, and no value."""
    text = f"tool {tool!r}: what `inject` gives for {', '.join(map(repr, names))} {why}"
    return ApplicationError(text, type=REFUSED, non_retryable=True)
