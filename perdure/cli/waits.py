"""What waits for a person or another system, in one line with the command that settles it: once for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perdure.cli.options import command
from perdure.cli.text import plain

if TYPE_CHECKING:
    from perdure.cli.display import Display
    from perdure.client import Progress
    from perdure.contracts import Json

Place = tuple[str, str]
"""The run in which something waits, and its key there: two runs below may have the same key."""


def place(run: str, row: Json) -> Place:
    """Where a row of the query `pending` of `run` waits: in the run itself, or in one below."""
    return str(row.get("workflow_id", run)), str(row["call"])


def decision(run: str, row: Json) -> str:
    """What waits, a row of the query `pending`, and the command that settles it."""
    id, call = place(run, row)
    if row["kind"] == "limit":
        limit, needed = row["args"].get("limit", "NAME"), row["args"].get("needed", "VALUE")
        raised = command("set-limits", id, "--limit", f"{limit}={needed}", *_by(row))
        return f"the run {id} waits for a limit: {plain(row['args'])}: {raised}"
    if row["kind"] == "approval":
        return f"{row['tool']} waits: {command('approve', id, call, *_by(row))}"
    return f"{row['tool']} waits: {command('complete', id, call, '--result', 'JSON')}"


def _by(row: Json) -> list[str]:
    """Who decides has to be named where not anybody may; a token names them by itself."""
    named = row.get("approvers") or row.get("votes") or row.get("needed", 1) > 1
    return ["--by", "NAME"] if named and not row.get("verifies") else []


class Waits:
    """Says of a run that is shown what waits in it and in the runs below."""

    def __init__(self, display: Display, run: str) -> None:
        self._display = display
        self._run = run
        self._told: set[Place] = set()

    def see(self, progress: Progress) -> None:
        """Say what waits now and was not said before."""
        if progress.status is not None:
            self.tell(progress.status.pending)

    def tell(self, pending: Sequence[Json]) -> None:
        """As `see`, of rows of the query `pending`."""
        for row in pending:
            if (here := place(self._run, row)) not in self._told:
                self._told.add(here)
                self._display.note("waiting", decision(self._run, row))
