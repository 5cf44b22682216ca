"""Whether a function that an app gives can be called as it will be."""

from __future__ import annotations

import inspect
from typing import Any

from perdure.errors import DeclarationError
from perdure.toolsets.callables import code_of
from perdure.typed import shown


def check_function(what: str, function: Any, arguments: int) -> None:
    """Raise `DeclarationError` unless `function` is `None` or an async callable of so many arguments."""
    if function is None:
        return
    if not inspect.iscoroutinefunction(code_of(function)):
        raise DeclarationError(f"{what}={function!r} isn't an async function: it would block the worker")
    try:
        inspect.signature(function).bind(*([None] * arguments))
    except TypeError as error:
        raise DeclarationError(f"{what}={function!r} can't be called with {arguments} argument(s): {error}") from None


def check_resources(resources: Any) -> None:
    """Raise `DeclarationError` for a function whose `@asynccontextmanager` was forgotten: nothing can be entered."""
    code = code_of(resources)
    if inspect.isasyncgenfunction(code) or inspect.iscoroutinefunction(code):
        raise DeclarationError(
            f"resources={shown(resources)} returns no async context manager: put @asynccontextmanager before a "
            "function that yields once"
        )


def check_deps(deps: Any, where: str) -> None:
    """Raise `DeclarationError` unless `deps` is a function that takes params and resources."""
    what = "DurableAgent(deps=…) takes a function of (params, resources), sync or async, called on the worker"
    if not callable(deps):
        raise DeclarationError(f"{where}: {what}; got {type(deps).__name__}")
    try:
        inspect.signature(deps).bind(None, None)
    except TypeError as error:
        raise DeclarationError(
            f"{where}: {what}; {getattr(deps, '__name__', deps)!r} can't be called so: {error}"
        ) from None
    except ValueError:
        return  # a builtin without a signature: it shows when it is called
