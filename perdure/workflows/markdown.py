"""Text of others in the Web UI's Markdown: whatever is in it, the page shows it as it is."""

from __future__ import annotations

import re

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import visible


def block(text: str) -> list[str]:
    """Lines that the page shows as they are."""
    return ["", *(f"    {line}" for line in text.split("\n")), ""]


def escape(text: str) -> str:
    """`text` on one line, with everything escaped that Markdown or HTML could give a meaning to: all punctuation."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", visible(" ".join(text.split())))
