"""Text that is as large compressed as it is, nearly: what fills the 1.5 MB that a run may take along."""

from __future__ import annotations

import base64
import random


def noise(size: int, seed: int = 0) -> str:
    """Text of so many bytes that hardly gets smaller: zlib makes three quarters of it."""
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()[:size]
