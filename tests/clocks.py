"""A clock that is moved by hand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Clock:
    """A monotonic clock that is moved by hand."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now
