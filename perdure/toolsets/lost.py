"""Errors of a call to an MCP server that aren't an answer of it, told by their shape: no MCP library is imported.

MCP's library makes up errors of the protocol for what its transport met with: a gateway's 502, a page in place of an
answer, a session that is gone. The tool may have run before each of them. So only an error that the server itself has
sent says that a call has come to an end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from perdure.contracts import cut, visible

CLOSED, TIMED_OUT = -32000, -32001
"""The codes of MCP's own library for a connection that ended, and for a request without an answer in time. Servers use
them too, for errors of their own, so the library's words count as well."""
ENDED = re.compile(r"Connection closed|SSE stream (ended|failed)")
LATE = re.compile(r"Request\b.* timed out|Timed out ")
UNREADABLE = {
    -32603: re.compile(r"Server returned an error response$"),
    -32700: re.compile(r"Failed to parse (SSE message|JSON response)\b"),
    -32600: re.compile(
        r"Unexpected content type\b|server answered a request with 202 Accepted$|Redirect to .* not followed\b"
        r"|Session terminated$"
    ),
    -32601: re.compile(r"Not Found$"),
}
"""What its HTTP transport makes of a status from 400 on without an error of MCP in the body, of an answer that is no
JSON-RPC, and of one that is none at all. The last two are a 404, with a session and without."""
DIED = re.compile(r"Client failed to connect\b")
"""The words of FastMCP's `RuntimeError` for a session that ended, also where it did so under a call."""
MOST = 3
"""How many faults of a tool list are told."""
BROKEN = re.compile(r"Invalid (structured content returned by|schema for) tool\b|Tool .* has an output schema but did")
"""The words of the library's `RuntimeError` for a result that isn't what the tool's own output schema says."""
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
    return any(timed_out(leaf) or _ended(leaf) or _unreadable(leaf) for leaf in _leaves(error))


def timed_out(error: BaseException | None) -> bool:
    """Whether only the time was up, the library's or the caller's: the connection may be good."""
    return isinstance(error, TimeoutError) or _says(error, TIMED_OUT, LATE)


def how(error: BaseException | None) -> str:
    """What became of the answer, of a request that has none."""
    if timed_out(error):
        return "did not answer in time"
    if isinstance(error, ValidationError) and error.title == "ListToolsResult":
        return f"lists its tools in a way that isn't valid by MCP: {_problems(error)}"
    leaves = list(_leaves(error))
    if any(isinstance(leaf, ValueError) or broken(leaf) for leaf in leaves):
        return "answered something that isn't valid by MCP, or by its own output schema"
    if any(map(_unreadable, leaves)):
        return "gave no answer that can be read"
    return "was lost before it answered"


def unanswered(error: Exception) -> str:
    """`how` of an error that a toolset of any kind has raised; empty where it isn't about an MCP server's answer.

    Pydantic AI's own MCP toolset lets some pass, and has the model call again what may have run for others.
    """
    cause = error.__cause__ if lost(error.__cause__) else error
    unsure = lost(cause) and any(is_mcp_error(leaf) or _died(leaf) for leaf in _leaves(cause))
    malformed = isinstance(error, ValidationError) and error.title == "CallToolResult"
    return how(cause) if unsure or malformed or broken(cause) else ""


def of_session(error: BaseException | None) -> bool:
    """Whether a server refuses a request because of its session: it was started anew, or has ended it."""
    return mcp_code(error) is not None and "session" in getattr(getattr(error, "error", None), "message", "").lower()


def in_its_place(error: BaseException | None) -> str:
    """What answers in place of an MCP server, as far as its library tells; empty where the server itself answers."""
    if not _unreadable(error):
        return ""
    if mcp_code(error) == -32603:
        return "it answers with an HTTP error: are `headers` and `auth` right?"
    if mcp_code(error) == -32601:
        return "it answers with HTTP 404: is the path right?"
    return "its answer isn't one of MCP: is the URL right?"


def broken(error: BaseException | None) -> bool:
    """Whether a result came that breaks the output schema of its tool."""
    return isinstance(error, RuntimeError) and BROKEN.match(str(error)) is not None


def mcp_code(error: BaseException | None) -> int | None:
    """The code of MCP's protocol error; `None` of any other."""
    return getattr(getattr(error, "error", None), "code", None) if is_mcp_error(error) else None


def _problems(error: ValidationError) -> str:
    """What is wrong with a list of tools, and with which. Values aren't told, but for the names of tools."""
    rows = error.errors(include_url=False, include_context=False)
    more = f"; and {len(rows) - MOST} more" if len(rows) > MOST else ""
    return "; ".join(map(_problem, rows[:MOST])) + more


def _problem(row: ErrorDetails) -> str:
    place, found = ".".join(map(str, row["loc"])), row["input"]
    name = cast("dict[str, object]", found).get("name") if isinstance(found, dict) else None
    return f"{visible(cut(place, 100))}{f' of the tool {name[:100]!r}' if isinstance(name, str) else ''}: {row['msg']}"


def _leaves(error: BaseException | None) -> Iterator[BaseException | None]:
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _ended(error: BaseException | None) -> bool:
    return _says(error, CLOSED, ENDED) or _died(error)


def _died(error: BaseException | None) -> bool:
    return isinstance(error, RuntimeError) and DIED.match(str(error)) is not None


def _unreadable(error: BaseException | None) -> bool:
    code = mcp_code(error)
    return code in UNREADABLE and _says(error, code, UNREADABLE[code])


def _says(error: BaseException | None, code: int, words: re.Pattern[str]) -> bool:
    message = getattr(getattr(error, "error", None), "message", "")
    return mcp_code(error) == code and words.match(message) is not None
