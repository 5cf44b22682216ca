"""Sizes of what the workflow emits. One byte too much fails a workflow task for ever, so everything is measured."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import MAX_PAYLOAD, RunResult, payload_size
    from perdure.errors import OutputTooLarge

MAX_TASK = 3_000_000
"""Bytes of commands in one workflow task; over 4 MB the server terminates the run."""
MAX_FAILURE_TEXT = 20_000
"""Characters of a failure's message."""


def fitting_result(result: RunResult) -> RunResult:
    """`result`, without its audit where it would be too large; the query `audit` still has it.

    Raises `OutputTooLarge` where the output alone is.
    """
    if payload_size(result) <= MAX_PAYLOAD:
        return result
    if result.audit:
        counted = result.model_copy(update={"audit": [{"left_out": len(result.audit)}]})
        if payload_size(counted) <= MAX_PAYLOAD:
            return counted
    raise OutputTooLarge(
        f"the output has {payload_size(result.output)} bytes as JSON; a result may have {MAX_PAYLOAD}. "
        "Let the agent return a reference to what it made."
    )


def cut(text: str, limit: int = MAX_FAILURE_TEXT) -> str:
    """`text`, cut to `limit` characters with a note of how much is missing."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"


class TaskBytes:
    """Counts the bytes of the commands of the current workflow task."""

    def __init__(self) -> None:
        self._history_length = -1
        self._used = 0

    def fits(self, amount: int, history_length: int) -> bool:
        """Whether `amount` more bytes fit in the task that began at `history_length`; counts them if so."""
        if history_length != self._history_length:
            self._history_length, self._used = history_length, 0
        if self._used and self._used + amount > MAX_TASK:
            return False
        self._used += amount
        return True
