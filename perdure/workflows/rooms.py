"""What a run that starts another one lets it use: a share of what it has left itself. Pure functions.

A share is held back as long as the other run is open, and what it hasn't used is there again when it has ended. So
runs that are open at once can't together use more than there is; each may go over by what its last request had, as any
run may, since tokens and cost are known only afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Json, Limits, Usage

SHARED = ("requests", "tool_calls", "input_tokens", "output_tokens", "total_tokens", "cost", "unpriced_requests")
"""The limits that are used up."""
NEEDED = ("requests", "input_tokens", "output_tokens", "total_tokens", "cost")
"""Those without which no model request is possible."""
OWN_REQUESTS = 1
"""Model requests that a run keeps for itself: it has to read the answer."""


def share(
    limits: Limits, run: Usage, turn: Usage, *, calls: int, held: Sequence[Limits], sharers: int, ends: timedelta | None
) -> Limits:
    """What one of `sharers` runs may use that are yet to be started. `calls`: tool calls of the step that may still
    be counted; `held`: what open runs may use; `ends`: the time to the run's own deadline."""
    room: Json = dict.fromkeys(Limits.model_fields)
    for name, value in _left(limits, run, turn).items():
        kept = {"requests": OWN_REQUESTS, "tool_calls": calls}.get(name, 0)
        rest = value - kept - sum(getattr(other, name) or 0 for other in held)
        room[name] = max(0, rest / sharers if isinstance(rest, Decimal) else rest // sharers)
    room["deadline"] = None if ends is None else max(ends, timedelta(milliseconds=1))
    return Limits.model_validate(room)


def _left(limits: Limits, run: Usage, turn: Usage) -> dict[str, Any]:
    """What is left of each limit that is set; of the run's and the turn's, the lower."""
    left: dict[str, Any] = {}
    for prefix, used in (("", run), ("turn_", turn)):
        for name in SHARED:
            most = getattr(limits, prefix + name, None)
            if most is not None:
                rest = most - _used(used, name)
                left[name] = min(left.get(name, rest), rest)
    if "cost" not in left:
        left.pop("unpriced_requests", None)
    return left


def _used(usage: Usage, name: str) -> Any:
    if name == "total_tokens":
        return usage.input_tokens + usage.output_tokens
    return (usage.cost or Decimal(0)) if name == "cost" else getattr(usage, name)


def used_up(room: Limits) -> str:
    """The first limit of which nothing is left, without which no request is possible; empty = there is some of each."""
    return next((name for name in NEEDED if (left := getattr(room, name)) is not None and left <= 0), "")


def lower(one: Limits, other: Limits) -> Limits:
    """Of each limit the lower one."""
    both = {name: (getattr(one, name), getattr(other, name)) for name in Limits.model_fields}
    return Limits(**{name: min((v for v in pair if v is not None), default=None) for name, pair in both.items()})
