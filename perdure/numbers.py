"""Whether a value that was given is a number at all: text or `None` in its place is told like a number out of range."""

from __future__ import annotations

import math


def positive(value: object) -> bool:
    """Whether it is a finite number above 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def whole(value: object, least: int = 1) -> bool:
    """Whether it is a whole number, at least `least`."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
