"""Errors of MCP's protocol that aren't an answer of the server, told by their shape: no MCP library is imported."""

from __future__ import annotations

CLOSED, TIMED_OUT = -32000, -32001
"""The codes of MCP's own library for a connection that ended, and for a request without an answer in time."""


def is_mcp_error(error: BaseException | None) -> bool:
    """Whether it is MCP's protocol error, under the name of either generation of its library."""
    return type(error).__name__ in ("MCPError", "McpError")


def lost(error: BaseException | None) -> bool:
    """Whether the answer to a request was lost, so that nobody knows what the request did."""
    return _code(error) in (CLOSED, TIMED_OUT)


def timed_out(error: BaseException | None) -> bool:
    """Whether only the time was up: the connection may be good."""
    return _code(error) == TIMED_OUT


def _code(error: BaseException | None) -> int | None:
    return getattr(getattr(error, "error", None), "code", None) if is_mcp_error(error) else None
