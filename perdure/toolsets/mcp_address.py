"""Where an MCP server is, as an error may say it: to the model, in history. A URL's path and query, and arguments of a
program, may hold keys, so neither is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic_ai.mcp import MCPToolset


def address_of(toolset: MCPToolset[Any]) -> str:
    """Scheme, host and port of a URL; a program, with the script it runs; empty where it is neither."""
    transport: Any = toolset.client.transport
    url, command = getattr(transport, "url", None), getattr(transport, "command", None)
    if url:
        return _origin(str(url))
    if command:
        first = next(iter(getattr(transport, "args", None) or ()), "")
        return f"{command} {first}" if first and Path(first).is_file() else str(command)
    return ""


def _origin(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}" if host else ""
