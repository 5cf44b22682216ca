"""One run, as a client sees it: its result, state, transcript and live text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.service import RPCError

from perdure.client.asking import Asking, is_open, summary
from perdure.client.errors import RunClosed, missing, run_failed
from perdure.client.follow import POLL, follow, wait_turn
from perdure.client.payloads import readable
from perdure.client.unserved import unserved
from perdure.client.verbs import Verbs
from perdure.client.views import LiveText, Progress, RunSummary
from perdure.contracts import Json, RunResult, StatusView, TurnView

QUERY_TIMEOUTS = (2.0, 3.0, 4.0, 5.0, 6.0)
"""Seconds for each try of a query. A query that meets a busy worker may be lost; without a worker it hangs."""
FAR = 2**62
"""More entries than any transcript has."""


class RunHandle(Verbs):
    """One run, by its workflow id, also where it continues as new. Also valid for runs that have ended."""

    def __init__(self, client: Client, id: str, *, query_timeouts: Sequence[float] = QUERY_TIMEOUTS) -> None:
        self.id = id
        self._client = client
        self._asking = Asking(client, id, query_timeouts)
        self._handle: WorkflowHandle[Any, RunResult] = client.get_workflow_handle(id, result_type=RunResult)

    async def result(self) -> RunResult:
        """Wait for the end of the run. Raises `RunFailed`."""
        try:
            with readable():
                return await self._handle.result()
        except WorkflowFailureError as error:
            raise run_failed(self.id, error.cause) from error
        except RPCError as error:
            raise missing(self.id, error) from error

    async def cancel(self) -> None:
        """Ask the run to end: running tools get their grace, every call gets an outcome, `result` is `Cancelled`."""
        try:
            await self._handle.cancel()
        except RPCError as error:
            raise missing(self.id, error) from error

    async def status(self) -> StatusView:
        """State, usage and open calls. Answered by a worker; raises `NoAnswer` where none does."""
        return await self._asking.query("status", None, StatusView)

    async def transcript(self, start: int = 0) -> list[Json]:
        """All entries of the transcript from `start` on that are kept. Answered by a worker, page by page."""
        return (await self.kept(start))[1]

    async def kept(self, start: int = 0) -> tuple[int, list[Json]]:
        """As `transcript`, with the index of the first entry: later than `start` where older ones were dropped."""
        page = await self._asking.page(start)
        first, entries = page.start, list(page.entries)
        while page.entries and page.start + len(page.entries) < page.total:
            page = await self._asking.page(page.start + len(page.entries))
            entries += page.entries
        return first, entries

    async def length(self) -> int:
        """How many entries the transcript has: `follow(start=await run.length())` shows only what is new."""
        return (await self._asking.page(FAR)).total

    async def pending(self) -> list[Json]:
        """What waits for a decision or a result. Answered by a worker."""
        return await self._asking.query("pending", None, list[Json])

    async def audit(self) -> list[Json]:
        """Who decided what. Answered by a worker, page by page."""
        rows: list[Json] = []
        while page := await self._asking.query("audit", {"start": len(rows)}, list[Json]):
            rows += page
        return rows

    async def turn(self, turn: int | None = None, *, message: str | None = None) -> TurnView:
        """What became of a turn, or of the message with that id; of the latest turn where none is named. Answered by a
        worker; raises `ClientError` for one that isn't known."""
        return await self._asking.query("turn", _given(turn, message), TurnView)

    async def wait_turn(self, turn: int | None = None, *, message: str | None = None, every: float = POLL) -> TurnView:
        """Wait until a turn is over: `done`, `failed` or `interrupted`. Looks at the run every so many seconds, and
        asks a worker only where something has changed; nothing is written to history. A lost connection, or a worker
        that is gone, is waited over.

        Raises `RunClosed` where the run ends before, `NoAnswer` where it has ended and no worker can tell, and
        `ClientError` for a turn or message that isn't known.
        """
        found = await wait_turn(self._asking, _given(turn, message), every)
        if not found.ended:
            raise RunClosed(f"run {self.id!r} has ended before the turn was over: see `perdure show {self.id}`")
        return found

    async def live(self) -> list[LiveText]:
        """What the run's activities say right now. Needs no worker's answer and writes no history."""
        return await self._asking.live(await self._asking.describe())

    async def describe(self) -> RunSummary:
        """The run as the server knows it."""
        return summary((await self._asking.describe()).workflow_execution_info)

    async def unserved(self) -> list[str]:
        """What the run waits for that nobody serves: calls on a task queue that no worker polls, child workflows whose
        own task fails; a line each, with what to do. Needs no worker. Empty also where the server lets nobody ask."""
        try:
            return await unserved(self._client, await self._asking.describe())
        except RPCError:
            return []

    async def check_open(self) -> None:
        """Raise `RunClosed` where the run has ended, `NoSuchRun` where there is none. Needs no worker."""
        if not is_open((await self._asking.describe()).workflow_execution_info):
            raise RunClosed(f"run {self.id!r} has ended: see `perdure show {self.id}`")

    def follow(self, *, start: int = 0, every: float = POLL) -> AsyncIterator[Progress]:
        """Look at the run again and again until it has ended: at a session until it is closed, not only to the end of a
        turn. Shows entries from `start` on, each once and none left out, also over a lost connection, a worker that is
        gone, and where the run continues as new; a reader that was away itself resumes with `Progress.next`.

        The last item may hold entries, too. Raises `NoSuchRun`, and what another try doesn't mend.
        """
        return follow(self._asking, start, every)


def _given(turn: int | None, message: str | None) -> Json:
    return {name: value for name, value in (("turn", turn), ("message", message)) if value is not None}
