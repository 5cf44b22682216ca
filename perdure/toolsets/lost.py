"""Errors of MCP's protocol and what they mean, told by their shape: no MCP library is imported."""

from __future__ import annotations

import re

CLOSED, TIMED_OUT = -32000, -32001
"""The codes of MCP's own library for a connection that ended, and for a request without an answer in time. Servers use
them too, for errors of their own, so the library's words count as well."""
ENDED = re.compile(r"Connection closed|SSE stream (ended|failed)")
LATE = re.compile(r"Request\b.* timed out|Timed out ")
ASKS = re.compile(r"(elicitation|sampling)(/create| not supported)", re.I)
"""How MCP's library refuses what a server asks a client that offers nothing of the kind."""
UNKNOWN = (-32601, -32602)
"""JSON-RPC's codes for a method that isn't there, and for parameters that aren't valid, as the name of a tool is."""
GONE = re.compile(r"^unknown tool\b|\btool\b.* not found\b", re.I)
"""How servers say in an ordinary result that they have no such tool. Only then is it worth a new list."""


def is_mcp_error(error: BaseException | None) -> bool:
    """Whether it is MCP's protocol error, under the name of either generation of its library."""
    return type(error).__name__ in ("MCPError", "McpError")


def lost(error: BaseException | None) -> bool:
    """Whether the answer to a request was lost, so that nobody knows what the request did."""
    return _says(error, CLOSED, ENDED) or _says(error, TIMED_OUT, LATE)


def timed_out(error: BaseException | None) -> bool:
    """Whether only the time was up, the library's or the caller's: the connection may be good."""
    return isinstance(error, TimeoutError) or _says(error, TIMED_OUT, LATE)


def mcp_code(error: BaseException | None) -> int | None:
    """The code of MCP's protocol error; `None` of any other."""
    return getattr(getattr(error, "error", None), "code", None) if is_mcp_error(error) else None


def _says(error: BaseException | None, code: int, words: re.Pattern[str]) -> bool:
    message = getattr(getattr(error, "error", None), "message", "")
    return mcp_code(error) == code and words.match(message) is not None
