"""Why something couldn't be reached, in words that hold no secret: they go to the model and into history.

The text of an exception may name a URL with a key in it, or a server's whole answer. So only what is one of a fixed set
is told: an operating system's words for a number, a status, a type's name.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from typing import Any, TypeVar, cast

from perdure.toolsets.lost import in_its_place, mcp_code

E = TypeVar("E", bound=Exception)


def reason_of(error: BaseException) -> str:
    """The reason as far as it is known; else the name of the innermost exception's type."""
    every: list[BaseException] = [part for part in _causes(error) if not isinstance(part, BaseExceptionGroup)]
    told = (_words(part) for part in reversed(every))
    return next(filter(None, told), type(every[-1] if every else error).__name__)


def for_the_log(error: E, cause: BaseException) -> E:
    """`error` with what caused it as a note, which the worker's log shows, and neither history nor the model."""
    for note in getattr(cause, "__notes__", None) or [f"[{cause!r}]"]:
        error.add_note(note)
    return error


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what caused it, and so on; chains may be circles. Of a group, the first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        inner = cast("BaseExceptionGroup[Any]", current).exceptions if isinstance(current, BaseExceptionGroup) else ()
        current = inner[0] if inner else current.__cause__ or current.__context__


def _words(error: BaseException) -> str:
    if isinstance(error, ssl.SSLError):
        return f"TLS: {reason}" if (reason := getattr(error, "reason", "")) else "TLS"
    if isinstance(error, socket.gaierror):
        return "the name of the host is not known"
    if isinstance(error, TimeoutError) and not error.errno:
        return "no answer in time"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    if words := in_its_place(error):
        return words
    if (code := mcp_code(error)) is not None:
        return f"it answers with the error {code}"
    status = getattr(getattr(error, "response", None), "status_code", None)
    return f"HTTP {status}" if isinstance(status, int) else ""
