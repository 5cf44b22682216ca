"""What answers the calls of a step, as rows of the transcript's entries. Pure."""

from __future__ import annotations

from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import CallOutcome, Json, payload_size
    from perdure.workflows.sizes import MAX_ENTRY


def chunks(rows: list[tuple[str, Json]]) -> list[list[tuple[str, Json]]]:
    """The answers of a step, in as many entries as a page of the query `transcript` needs them to be."""
    found: list[list[tuple[str, Json]]] = [[]]
    used = 0
    for row in rows:
        size = payload_size(row[1])
        if found[-1] and used + size > MAX_ENTRY:
            found.append([])
            used = 0
        found[-1].append(row)
        used += size
    return found


def outcome_entry(outcome: CallOutcome) -> Json:
    """An outcome as it is told: with its parts, its result, or in words."""
    row: dict[str, Any] = {
        "key": outcome.key,
        "tool_call_id": outcome.tool_call_id,
        "tool": outcome.tool,
        "kind": outcome.kind,
    }
    if outcome.parts:
        return row | {"parts": outcome.parts}
    return row | ({"content": outcome.result[0]} if outcome.result else {"text": outcome.text})
