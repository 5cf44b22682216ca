"""What is called where an app gives something that can be called."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any


def code_of(given: Any) -> Any:
    """The function or method that runs: that in a `functools.partial`, and the `__call__` of an object.

    What can't be called is returned as it is.
    """
    while isinstance(given, partial):
        given = given.func
    return given if inspect.isroutine(given) else getattr(given, "__call__", given)  # noqa: B004
