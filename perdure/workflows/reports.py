"""What runs below tell by the signal `report`, which anybody can send: only what an open run could say is taken."""

from __future__ import annotations

import math
import re
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Json, Report, ReportedRow, Usage, payload_size
    from perdure.errors import InvalidRequest
    from perdure.workflows import details
    from perdure.workflows.state import Below, RunState
    from perdure.workflows.upward import MAX_ROWS

MAX_REPORT = 200_000
"""Bytes of all rows."""
HASHED = re.compile(r"[0-9a-f]{32}")
"""An id in the place of one that would be too long: see `keys.child_id`."""


def take(state: RunState, raw: tuple[Any, ...]) -> None:
    """Take note of what a run below tells. What isn't of an open one is of before a reset, and of no use.

    Raises `InvalidRequest`, and Pydantic's `ValidationError`, for what no run would tell.
    """
    sent = Report.model_validate(raw[0] if raw else None)
    below = state.below.get(sent.call)
    if below is None:
        return
    _check_rows(below, sent.pending)
    _check_usage(sent.usage)
    below.pending, below.works, below.usage = sent.pending, sent.works, sent.usage
    details.waits(state)


def address(state: RunState, key: str) -> str:
    """The id of the run below in which a call of that key waits; empty = there is none."""
    waiting = (row for below in state.below.values() for row in below.pending if row["call"] == key)
    return next((row["workflow_id"] for row in waiting), "")


def _check_rows(below: Below, rows: list[Json]) -> None:
    size = payload_size(rows)
    if len(rows) > MAX_ROWS or size > MAX_REPORT:
        raise InvalidRequest(f"{len(rows)} rows of {size} bytes; a report has at most {MAX_ROWS} of {MAX_REPORT}")
    for row in rows:
        run = ReportedRow.model_validate(row).workflow_id
        if run != below.run and not run.startswith(f"{below.run}/") and not HASHED.fullmatch(run):
            raise InvalidRequest(f"run {run!r} is neither {below.run!r} nor one that it has started")


def _check_usage(usage: Usage) -> None:
    counts = [value for value in dict(usage).values() if isinstance(value, int | float)]
    every = [*counts, float(usage.cost or 0), *usage.more.values(), *usage.details.values()]
    if any(value < 0 or not math.isfinite(value) for value in every):
        raise InvalidRequest("a usage is made of finite numbers, none below 0")
