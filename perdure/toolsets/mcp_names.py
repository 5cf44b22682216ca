"""Which tools of an MCP server a model can be shown: a server may list any text as a tool's name."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import TypeVar

logger = logging.getLogger("perdure.mcp")

NAME = re.compile(r"[A-Za-z0-9_./:-]{1,128}")
"""What MCP says a name is, and more than any provider takes: not all take dots, slashes, colons, or more than 64."""
Listed = TypeVar("Listed")


def nameable(server: str, tools: Mapping[str, Listed], told: set[str]) -> dict[str, Listed]:
    """The tools that have a name. Warns of the others, in one line, but for those that are in `told`: it adds them."""
    others = {name for name in tools if not NAME.fullmatch(name)}
    if others - told:
        logger.warning(
            "MCP server %r: left out the tools %s: no provider takes such a name. It has 1 to 128 of A-Z, a-z, 0-9, _, "
            "-, ., / and :",
            server,
            sorted(name[:150] for name in others),
        )
        told |= others
    return {name: tool for name, tool in tools.items() if name not in others}
