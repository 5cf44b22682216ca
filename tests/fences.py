"""The code fences of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
NAMED = re.compile(r"# (\w+\.py)\n")
"""The first line of a fence that others of its page need as a file."""


def fences(page: Path, *languages: str) -> list[str]:
    """The fences of a page in these languages."""
    return [body for language, body in FENCE.findall(page.read_text()) if language in languages]
