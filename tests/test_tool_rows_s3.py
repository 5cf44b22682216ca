"""Rows S3 of the table in docs/tools.md that no other test proves: what smolagents itself keeps out."""

from __future__ import annotations

from typing import Any

import pytest
import smolagents  # pyright: ignore[reportMissingTypeStubs]


@pytest.mark.parametrize("name", ["from_hub", "load_tool"])
def test_s3_17_nothing_is_loaded_from_the_hub_without_trust(name: str) -> None:
    """perdure has no way of its own to load a tool; whoever loads one says so in their own code."""
    library: Any = smolagents
    load = {"from_hub": library.Tool.from_hub, "load_tool": library.load_tool}[name]
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        load("nobody/nothing")
