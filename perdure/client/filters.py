"""Temporal's list filters."""

from __future__ import annotations

from perdure.client.views import RunStatus
from perdure.contracts import WORKFLOW_TYPE


def list_filter(query: str = "", agent: str | None = None, status: RunStatus | None = None) -> str:
    """Temporal's list filter for runs of perdure."""
    parts = [f"WorkflowType = {quoted(WORKFLOW_TYPE)}", f"({query})" if query else ""]
    parts += [f"AgentName = {quoted(agent)}"] if agent is not None else []
    parts += [f"ExecutionStatus = {quoted(status.title().replace('_', ''))}"] if status else []
    return " AND ".join(filter(None, parts))


def quoted(text: str) -> str:
    """A string of Temporal's list filter, which is SQL: in single quotes, with quotes and backslashes doubled.

    The server's own faults stay: server 1.32 loses quotes at either end of a value (temporalio/temporal#12019), and on
    SQLite finds none with a double quote or a backslash.
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
