"""The server `odd.py` as tests start it, and what it was asked."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.mcp_servers import Kind, Shop, opened

OBJECT = {"type": "object", "properties": {"how": {"type": "string"}}}
NUMBERED = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOLS: list[dict[str, Any]] = [
    {"name": "pay", "inputSchema": OBJECT},
    {"name": "typed", "inputSchema": OBJECT, "outputSchema": NUMBERED},
]


@asynccontextmanager
async def odd(kind: Kind, folder: Path, tools: object = TOOLS, *, sessions: bool = False) -> AsyncGenerator[Shop]:
    """The server `odd.py` with these tools, while the block runs."""
    (folder / "tools.json").write_text(json.dumps(tools))
    if sessions:
        (folder / "sessions").touch()
    async with opened(kind, folder, program="odd.py") as started:
        yield started


def calls(shop: Shop) -> list[str]:
    """What has truly run."""
    return [line for line in shop.ran if line != "list"]


def starts(shop: Shop) -> int:
    """How often the server was started."""
    return sum(line.startswith("start ") for line in shop.lines)
