"""Names that a Temporal server takes: of task queues, types of activities and workflows, Nexus operations; and those of
tools, that every provider takes."""

from __future__ import annotations

import re

from perdure.errors import DeclarationError

MAX_NAME = 1000
"""Bytes. A server refuses longer ones by failing the workflow task, for ever."""
RESERVED = ("/_sys/", "__temporal_")
"""What the names of Temporal itself begin with: a server refuses them in the same way."""
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider accepts as the name of a tool."""


def check_tool_name(name: str, where: str) -> None:
    """Raise `DeclarationError` for the name of a tool that a provider would refuse; `where` says whose it is."""
    if not TOOL_NAME.fullmatch(name):
        raise DeclarationError(f"{where}: the tool name {name!r} is not 1 to 64 of A-Z, a-z, 0-9, _ and -")


def check_name(name: object, what: str) -> None:
    """Raise `DeclarationError` for a name that a server doesn't take; `what` says whose it is."""
    if not isinstance(name, str):
        raise DeclarationError(f"{what}={name!r} must be text")
    if not name or not 0 < _size(name) <= MAX_NAME or name.startswith(RESERVED):
        raise DeclarationError(f"{what}={name[:100]!r} must have 1 to {MAX_NAME} bytes and not begin with {RESERVED}")


def _size(name: str) -> int:
    """The bytes of a name in UTF-8; 0 where it has none, for half a character."""
    try:
        return len(name.encode())
    except UnicodeEncodeError:
        return 0
