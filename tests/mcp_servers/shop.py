"""A real MCP server for tests, a process of its own: `shop.py stdio JOURNAL` or `shop.py http JOURNAL PORT`.

Each tool writes a line to the journal when it truly runs. Some crash, hang, or change the list on purpose.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel

shop = MCPServer("shop", instructions="Prices are in cents.", log_level="ERROR")
JOURNAL = Path(sys.argv[2])
served: list[int] = []


def ran(line: str) -> None:
    """One line, in one write."""
    with JOURNAL.open("a") as journal:
        journal.write(f"{line}\n")


@shop.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(n: int) -> str:
    """Harmless."""
    ran(f"look {n}")
    return f"saw {n}"


@shop.tool()
def pay(n: int) -> str:
    """Without any claim."""
    ran(f"pay {n}")
    return f"paid {n}"


@shop.tool(annotations=ToolAnnotations(destructive_hint=True))
def wipe(n: int) -> str:
    """Destructive, as it says."""
    ran(f"wipe {n}")
    return f"wiped {n}"


@shop.tool(annotations=ToolAnnotations(idempotent_hint=True))
def put(n: int) -> str:
    """Idempotent, as it says; ends the server when it runs first."""
    first = f"put {n}" not in JOURNAL.read_text().splitlines()
    ran(f"put {n}")
    if first:
        os._exit(1)
    return f"put {n}"


@shop.tool()
def die(n: int) -> str:
    """Ends the server in the middle of the call."""
    ran(f"die {n}")
    os._exit(1)


@shop.tool()
async def hang(n: int) -> str:
    """Never answers."""
    ran(f"hang {n}")
    await asyncio.Event().wait()
    return "never"


@shop.tool()
async def block(n: int) -> str:
    """Answers once there is a file `go` beside the journal. Until then the server does nothing else."""
    ran(f"block {n}")
    while not JOURNAL.with_name("go").exists():
        time.sleep(0.05)  # noqa: ASYNC251
    return f"went {n}"


@shop.tool()
async def quota(n: int) -> str:
    """Refuses by an error of the protocol, under a code that MCP's library uses for a connection that ended."""
    ran(f"quota {n}")
    raise MCPError(-32000, "Quota used up")


@shop.tool()
def fail() -> str:
    """Answers with an error."""
    raise ToolError("no such customer")


@shop.tool()
def big(size: int) -> str:
    """As much text as is asked for."""
    ran(f"big {size}")
    return "x" * size


@shop.tool()
async def change(ctx: Context, tell: bool) -> str:
    """Takes `pay` away and adds `gift`; says so to the client, or doesn't."""
    ran("change")
    shop.remove_tool("pay")
    shop.add_tool(gift, name="gift")
    if tell:
        await ctx.notify_tools_changed()
        await ctx.session.send_tool_list_changed()
    return "changed"


def gift(n: int) -> str:
    """Only there after `change`."""
    ran(f"gift {n}")
    return f"gave {n}"


@shop.tool()
def count() -> int:
    """How many calls of it this server has served: its memory is the conversation."""
    served.append(1)
    ran(f"count {len(served)}")
    return len(served)


class Name(BaseModel):
    """What `ask` wants to know."""

    name: str


@shop.tool()
async def ask(ctx: Context) -> str:
    """Asks the user in the middle of the call."""
    answer = await ctx.elicit("Your name?", Name)
    return f"asked: {answer}"


@shop.tool()
async def sample(ctx: Context) -> str:
    """Asks the client for a model request in the middle of the call."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text="Say hi."))
    answer = await ctx.session.create_message([message], max_tokens=5)  # pyright: ignore[reportDeprecated]
    return f"sampled: {answer}"


if __name__ == "__main__":
    ran(f"start {os.getpid()}")
    if sys.argv[1] == "stdio":
        shop.run("stdio")
    else:
        shop.run("streamable-http", host="127.0.0.1", port=int(sys.argv[3]))
