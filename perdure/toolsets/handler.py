"""The function that serves a contract: whether its signature and the contract agree, and how it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_ai import RunContext
from pydantic_ai.messages import ToolReturn

from perdure.errors import DeclarationError
from perdure.toolsets.callables import code_of
from perdure.toolsets.contract import ToolContract
from perdure.toolsets.json_types import hints_of, name_of, read_once

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
SCALARS = (str, bytes, bool, int, float)


@dataclass(frozen=True)
class Handler:
    """A function with what is known of it."""

    contract: ToolContract
    function: Callable[..., Any]
    takes_ctx: bool
    takes_model: bool
    """It takes the input model, not an argument for each field."""
    is_async: bool

    def call(self, ctx: RunContext[Any], args: Mapping[str, Any]) -> Any:
        """What the function returns for validated arguments: a result, or what has to be awaited for one."""
        before = (ctx,) if self.takes_ctx else ()
        model = self.contract.read_input(args)
        if self.takes_model:
            return self.function(*before, model)
        fields = {name: getattr(model, name) for name in self.contract.fields.values()}
        return self.function(*before, **fields, **(model.model_extra or {}))


def handler_of(contract: ToolContract, function: Callable[..., Any]) -> Handler:
    """The function as the contract's handler. Raises `DeclarationError` where the two don't agree, naming both."""
    where = f"contract {contract.name!r}: its handler {getattr(function, '__name__', function)!r}"
    if not callable(function):
        raise DeclarationError(f"{where} is {type(function).__name__}, which can't be called")
    target = code_of(function)
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise DeclarationError(f"{where} yields; a tool has one result, so let it return a list")
    parameters, hints = list(inspect.signature(function).parameters.values()), hints_of(target)
    takes_ctx = bool(parameters) and _is_context(hints.get(parameters[0].name))
    own = parameters[1:] if takes_ctx else parameters
    takes_model = _takes_model(contract, own, hints)
    if not takes_model:
        _check_names(contract, own, where)
        _check_types(contract, hints, where)
    _check_return(contract, hints, where)
    return Handler(contract, function, takes_ctx, takes_model, inspect.iscoroutinefunction(target))


def _is_context(hint: Any) -> bool:
    return (get_origin(hint) or hint) is RunContext


def _takes_model(contract: ToolContract, parameters: list[inspect.Parameter], hints: Mapping[str, Any]) -> bool:
    if len(parameters) != 1:
        return False
    hint = hints.get(parameters[0].name)
    return isinstance(hint, type) and hint is not BaseModel and issubclass(contract.input_model, hint)


def _check_names(contract: ToolContract, parameters: list[inspect.Parameter], where: str) -> None:
    """Each field has its parameter and each parameter its field; `**kwargs` takes any."""
    if wrong := [parameter.name for parameter in parameters if parameter.kind not in (*NAMED, parameter.VAR_KEYWORD)]:
        raise DeclarationError(f"{where}: arguments are passed by name, which {wrong} don't take")
    takes = {parameter.name for parameter in parameters if parameter.kind in NAMED}
    needs = {
        parameter.name for parameter in parameters if parameter.kind in NAMED and parameter.default is parameter.empty
    }
    fields = set(contract.fields.values())
    any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    if needs - fields or takes - fields or (fields - takes and not any_name):
        raise DeclarationError(
            f"{where} takes {sorted(takes)}, the contract's fields are {sorted(fields)}: they must be the same, or the "
            f"handler takes one parameter that is annotated as {contract.input_model.__name__}"
        )


def _check_types(contract: ToolContract, hints: Mapping[str, Any], where: str) -> None:
    for name, field in contract.input_model.model_fields.items():
        if name in hints and not _agree(field.annotation, hints[name]):
            raise DeclarationError(
                f"{where} takes {name!r} as {name_of(hints[name])}, the contract has it as {name_of(field.annotation)}"
            )


def _check_return(contract: ToolContract, hints: Mapping[str, Any], where: str) -> None:
    returns = hints.get("return", Any)
    if (inner := read_once(returns)) is not None:
        raise DeclarationError(
            f"{where} returns {name_of(inner)}; a tool has one result: let it be async, or take a list"
        )
    if (
        returns is not ToolReturn
        and get_origin(returns) is not ToolReturn
        and not _fits(returns, contract.output_model)
    ):
        raise DeclarationError(
            f"{where} returns {name_of(returns)}, the contract says {name_of(contract.output_model)}"
        )


def _agree(field: Any, hint: Any) -> bool:
    """Whether what a field holds can be passed as `hint`: both take `None` or neither does, and plain classes fit."""
    if Any in (field, hint) or hint is object:
        return True
    return _takes_none(field) == _takes_none(hint) and _fits(_without_none(field), _without_none(hint))


def _fits(given: Any, wanted: Any) -> bool:
    """Whether a value of the one type can be one of the other, as far as two plain classes show it."""
    given, wanted = _plain(given), _plain(wanted)
    if not isinstance(given, type) or not isinstance(wanted, type) or given is object or Any in (given, wanted):
        return True
    if issubclass(given, Mapping):
        return wanted not in SCALARS
    try:
        return issubclass(given, wanted) or (given is int and wanted is float)
    except TypeError:  # a protocol or TypedDict: only Pydantic can say
        return True


def _plain(kind: Any) -> Any:
    """The class of a type without what is said of its parts; the type itself where it is no class."""
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return get_origin(kind) or kind


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _takes_none(kind: Any) -> bool:
    return any(member in (None, NoneType, Any) for member in _members(kind))


def _without_none(kind: Any) -> Any:
    rest = [member for member in _members(kind) if member not in (None, NoneType)]
    return rest[0] if len(rest) == 1 else kind
