"""What `MCPServer` doesn't take, checked when it is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastmcp.client import Client
from fastmcp.client.transports import ClientTransport

from perdure.errors import DeclarationError

NOT_CARRIED = {
    "sampling_model": "a server may not ask for model requests: no limit of the run would count them",
    "sampling_handler": "a server may not ask for model requests: no limit of the run would count them",
    "cache_tools": "the tool list is kept for ttl=…",
    "init_timeout": "connect_timeout=… is the time for it",
    "client": "it is the first argument",
}


def check(where: str, source: Any, options: Mapping[str, Any], per_run: bool) -> None:
    """Raise `DeclarationError` for the first thing that is wrong."""
    for name in options.keys() & NOT_CARRIED.keys():
        raise DeclarationError(f"{where}: {name}=… isn't taken: {NOT_CARRIED[name]}")
    for name in ("auth", "headers"):
        if callable(options.get(name)) and not hasattr(options[name], "auth_flow"):
            raise DeclarationError(
                f"{where}: {name} as a function would need a connection for each call: use MCPToolset itself"
            )
    if isinstance(source, Client):
        raise DeclarationError(f"{where}: give a function that makes the client, as each connection needs its own")
    if per_run and isinstance(source, ClientTransport):
        raise DeclarationError(f"{where}: per_run=True needs a function that makes the transport for each session")
