"""What `MCPServer` doesn't take, checked when it is built."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from fastmcp.client import Client
from fastmcp.client.transports import ClientTransport

from perdure.errors import DeclarationError
from perdure.numbers import positive
from perdure.policy import seconds
from perdure.typed import check_value, shown

NOT_CARRIED = {
    "sampling_model": "a server may not ask for model requests: no limit of the run would count them",
    "sampling_handler": "a server may not ask for model requests: no limit of the run would count them",
    "cache_tools": "the tool list is kept for ttl=…",
    "init_timeout": "connect_timeout=… is the time for it",
    "client": "it is the first argument",
}


def check(where: str, source: Any, options: Mapping[str, Any], per_run: bool) -> None:
    """Raise `DeclarationError` for the first thing that is wrong with where the server is, or with the options of
    `MCPToolset`."""
    for name in options.keys() & NOT_CARRIED.keys():
        raise DeclarationError(f"{where}: {name}=… isn't taken: {NOT_CARRIED[name]}")
    for name in ("auth", "headers"):
        if callable(options.get(name)) and not hasattr(options[name], "auth_flow"):
            raise DeclarationError(
                f"{where}: {name} as a function would need a connection for each call: use MCPToolset itself"
            )
    if told := unsendable(options.get("headers")):
        raise DeclarationError(f"{where}: {told}")
    if isinstance(source, Client):
        raise DeclarationError(f"{where}: give a function that makes the client, as each connection needs its own")
    if per_run and isinstance(source, ClientTransport):
        raise DeclarationError(f"{where}: per_run=True needs a function that makes the transport for each session")


def unsendable(headers: Any) -> str:
    """What is wrong with headers that no request can have; empty = nothing. Values aren't told: they hold keys."""
    if headers is None or callable(headers):
        return ""
    if not isinstance(headers, Mapping):
        return f'headers=… must be a mapping, as in {{"Authorization": "Bearer …"}}, and not of type {_type(headers)}'
    for name, value in cast("Mapping[Any, Any]", headers).items():
        if not (isinstance(name, str) and isinstance(value, str)):
            return f"headers=… are text, but {shown(name)} is of type {_type(value)}"
        if any(mark in value for mark in "\r\n\0"):
            return f"the header {name!r} has a line break in it, as a key that is read from a file may: strip() it"
    return ""


def _type(value: Any) -> str:
    return type(value).__name__


def unreachable(source: Any) -> str:
    """What is wrong with where the server is, if it says neither a server nor a program; empty = it does."""
    if isinstance(source, int | float | list | tuple | set | type) or source is None:
        return f"{shown(source)} is no server: give a URL, a Path, a transport, or a function that makes one of them"
    if not isinstance(source, str | Path):
        return ""
    if str(source).endswith((".py", ".js")):
        return "" if Path(source).exists() else f"there is no file {str(source)!r}, seen from {str(Path.cwd())!r}"
    if str(source).startswith("http"):
        return ""
    return (
        f"{str(source)!r} is neither a URL, which begins with https:// or http://, nor a file that ends with .py or "
        ".js. Another program is a StdioTransport(…) of fastmcp"
    )


def times(where: str, ttl: float | timedelta, connect_timeout: float | timedelta) -> tuple[float, float]:
    """Both in seconds. Raises `DeclarationError`."""
    kept, connecting = seconds(ttl) or 0.0, seconds(connect_timeout) or 0.0
    if not (kept == 0 or positive(kept)):
        raise DeclarationError(f"{where}: ttl={ttl!r} must be a finite time, at least 0 seconds")
    if not positive(connecting):
        raise DeclarationError(
            f"{where}: connect_timeout={connect_timeout!r} must be a finite time, more than 0 seconds"
        )
    return kept, connecting


def named(id: str, max_sessions: int) -> str:
    """What errors call the server. Raises `DeclarationError` where it has no name, or may have no session."""
    check_value(id, str, "MCPServer(…): id")
    if not id:
        raise DeclarationError('an MCP server needs an id: MCPServer(…, id="crm")')
    if type(max_sessions) is not int or max_sessions < 1:
        raise DeclarationError(f"MCPServer(id={id!r}): max_sessions={max_sessions!r} must be at least 1")
    return f"MCPServer(id={id!r})"
