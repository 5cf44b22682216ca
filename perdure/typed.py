"""Whether what an app declares has the types that it should have, by the annotations that are there anyway: on the
fields of dataclasses and the parameters of functions. What is wrong is told in one sentence."""

from __future__ import annotations

import collections.abc as abc
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from perdure.errors import DeclarationError

CALLABLE: Any = get_origin(Callable[..., Any])
LONGEST = 80
"""Characters of a value that is shown as it is."""
WORDS: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    NoneType: "None",
    Any: "anything",
}


def check_fields(declared: Any, *, own: Collection[str] = ()) -> None:
    """Raise `DeclarationError` for the first field of a dataclass whose value isn't of the field's type.

    `own` are those that the class looks at itself, in words of its own.
    """
    kinds = _hints(cast("Any", type(declared)))
    for field in fields(declared):
        if field.name not in own:
            check_value(getattr(declared, field.name), kinds[field.name], field.name)


def check_arguments(
    function: Callable[..., Any], given: Mapping[str, Any], where: str, *, own: Collection[str] = ()
) -> None:
    """Raise `DeclarationError` for the first argument that isn't of its parameter's type.

    `given` has them by name: `locals()` at the head of the function. `own` are those that it looks at itself.
    """
    for name, kind in _hints(function).items():
        if name in given and name not in own:
            check_value(given[name], kind, f"{where}: {name}")


def check_value(value: Any, kind: Any, what: str) -> None:
    """Raise `DeclarationError` unless the value is of the type; `what` says what it is the value of."""
    if told := _mistake(value, kind, what):
        raise DeclarationError(told)


def check_options(given: Mapping[str, Any], known: Any, where: str) -> None:
    """Raise `DeclarationError` for the first option that isn't of its type in the TypedDict `known`, nor `None`."""
    kinds = _hints(known)
    for name, value in given.items():
        if value is not None:
            check_value(value, kinds.get(name, Any), f"{where}: {name}")


@cache
def _hints(described: Any) -> dict[str, Any]:
    found = {name: _hint_of(described, name) for name in inspect.get_annotations(described)}
    parameters = inspect.signature(described).parameters.values() if inspect.isroutine(described) else ()
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            found.pop(parameter.name, None)  # of each of them, not of all
    return found


def _hint_of(described: Any, name: str) -> Any:
    """The type of a field or parameter; anything where a library's own alias has names that only a checker knows."""
    names = getattr(described, "__globals__", None) or vars(sys.modules[described.__module__])
    holder = type("Holder", (), {"__annotations__": {name: inspect.get_annotations(described)[name]}})
    try:
        return get_type_hints(holder, names)[name]
    except NameError:
        return Any


def _mistake(value: Any, kind: Any, what: str) -> str | None:
    """What is wrong, in one sentence; `None` = nothing, or nothing that can be seen."""
    options = _options(kind)
    if any(option is Any or option is object or isinstance(option, TypeVar) for option in options):
        return None
    found = [told for option in options if (told := _against(value, option, what)) is not None]
    if len(found) < len(options):
        return None
    inner = next((told for told in found if told), "")
    return inner or f"{what}={shown(value)} must be {_words(kind)}{_hint(value, options)}"


def _options(kind: Any) -> list[Any]:
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    members = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return [NoneType if member is None else member for member in members]


def _against(value: Any, kind: Any, what: str) -> str | None:
    """As `_mistake`, for a type that is no union; empty where only the type says what is wrong."""
    origin, args = get_origin(kind) or kind, get_args(kind)
    if origin is Literal:
        known = any(type(value) is type(one) and value == one for one in args)
        return None if known else f"{what}={shown(value)} is none of {args}"
    if origin in (abc.Sequence, abc.Collection, list):
        return _in_list(value, args[0] if args else Any, what)
    if origin in (abc.Mapping, dict):
        return _in_mapping(value, args or (Any, Any), what)
    if origin is CALLABLE:
        return _call_problem(value, args, what) if callable(value) else ""
    if origin is type:
        return None if isinstance(value, type) else ""
    return None if _is_a(value, origin) else ""


def _is_a(value: Any, kind: Any) -> bool:
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    try:
        return isinstance(value, kind)
    except TypeError:  # a TypedDict, or a protocol that isn't for this: nothing is known of its values
        return True


def _in_list(value: Any, kind: Any, what: str) -> str | None:
    if not isinstance(value, Collection) or isinstance(value, str | bytes | Mapping):
        return ""
    items = enumerate(cast("Collection[Any]", value))
    return next((told for place, item in items if (told := _mistake(item, kind, f"{what}[{place}]"))), None)


def _in_mapping(value: Any, kinds: tuple[Any, ...], what: str) -> str | None:
    key_kind, kind = kinds
    if not isinstance(value, Mapping):
        return ""
    for key, item in cast("Mapping[Any, Any]", value).items():
        told = _mistake(key, key_kind, f"{what}: the key") or _mistake(item, kind, f"{what}[{key!r}]")
        if told:
            return told
    return None


def _call_problem(function: Any, args: tuple[Any, ...], what: str) -> str | None:
    """Whether it can be called with as many arguments as the type says."""
    takes: Any = args[0] if args else ...
    if not isinstance(takes, list):
        return None
    count = len(cast("list[Any]", takes))
    try:
        inspect.signature(function).bind(*([None] * count))
    except TypeError as error:
        return f"{what}={shown(function)} can't be called with {count} argument{'s' * (count != 1)}: {error}"
    except ValueError:  # a builtin without a signature: it shows when it is called
        return None
    return None


def shown(value: Any) -> str:
    """A value for a message: as it was written, or by its type where that is long."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    text = repr(value)
    told = len(text) <= LONGEST and "\n" not in text and " at 0x" not in text
    return text if told else _with_article(type(value).__name__)


def _words(kind: Any) -> str:
    """A type, in words."""
    options = _options(kind)
    if len(options) > 1:
        named = [_words(option) for option in options if option is not NoneType or len(options) > 2]
        return " or ".join(named)
    (one,) = options
    origin, args = get_origin(one) or one, get_args(one)
    if origin in (abc.Sequence, abc.Collection, abc.Iterable, list):
        return "a list of names" if args[:1] == (str,) else "a list"
    if origin in (abc.Mapping, dict):
        return f"a dictionary, names to {_words(args[1])}" if args and args[1] is not Any else "a dictionary"
    if origin is CALLABLE:
        return "a function"
    if origin is type:
        return "a class"
    return WORDS.get(origin) or _class_words(origin)


def _class_words(kind: Any) -> str:
    if getattr(kind, "_is_protocol", False):
        names: list[str] = [name for name in cast("dict[str, Any]", vars(kind)) if not name.startswith("_")]
        return f"something with {', '.join(names)}"
    name = str(getattr(kind, "__name__", kind)).removeprefix("Abstract")
    return _with_article(f"{name}(…)" if _is_ours(kind) else name)


def _is_ours(kind: Any) -> bool:
    return str(getattr(kind, "__module__", "")).startswith("perdure.")


def _with_article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"


def _hint(value: Any, options: Iterable[Any]) -> str:
    """What to do, where that can be guessed."""
    for option in options:
        origin, args = get_origin(option) or option, get_args(option)
        if isinstance(value, type) and isinstance(origin, type) and issubclass(value, origin):
            return f": make one, {value.__name__}(…)"
        if isinstance(value, Mapping) and _is_ours(origin):
            pairs = cast("Mapping[Any, Any]", value).items()
            return f": write {origin.__name__}({', '.join(f'{name}={item!r}' for name, item in pairs)})"
        if origin in (abc.Sequence, abc.Collection, list) and args and _mistake(value, args[0], "") is None:
            return ": put it into a list, […]"
        name: Any = getattr(cast("Any", value), "name", None)
        if origin is str and isinstance(name, str) and not isinstance(value, type):
            return f": give its name, {name!r}"
    return ""
