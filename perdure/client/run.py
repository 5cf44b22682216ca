"""One run, as a client sees it: its result, state, transcript and live text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, timedelta
from typing import Any, TypeVar, cast

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from perdure.client.errors import ClientError, NoAnswer, RunClosed, missing, run_failed
from perdure.client.payloads import readable
from perdure.client.unanswered import why_unanswered
from perdure.client.verbs import Verbs
from perdure.client.views import LiveText, Progress, RunSummary
from perdure.contracts import Json, RunResult, StatusView, TranscriptPage, TurnView

QUERY_TIMEOUTS = (2.0, 3.0, 4.0, 5.0, 6.0)
"""Seconds for each try of a query. A query that meets a busy worker may be lost; without a worker it hangs."""
LOST = (RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED, RPCStatusCode.UNAVAILABLE)
"""What a query that nobody answered in time comes back with."""
POLL = 0.15
"""Seconds between two looks at a run that is followed."""

T = TypeVar("T")


class RunHandle(Verbs):
    """One run, by its workflow id, also where it continues as new. Also valid for runs that have ended."""

    def __init__(self, client: Client, id: str, *, query_timeouts: Sequence[float] = QUERY_TIMEOUTS) -> None:
        self.id = id
        self._timeouts = query_timeouts
        self._client = client
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
        return await self._query("status", None, StatusView, self._timeouts)

    async def transcript(self, start: int = 0) -> list[Json]:
        """All entries of the transcript from `start` on. Answered by a worker, page by page."""
        return await self._entries(start, self._timeouts)

    async def pending(self) -> list[Json]:
        """What waits for a decision or a result. Answered by a worker."""
        return await self._query("pending", None, list[Json], self._timeouts)

    async def audit(self) -> list[Json]:
        """Who decided what. Answered by a worker, page by page."""
        rows: list[Json] = []
        while page := await self._query("audit", {"start": len(rows)}, list[Json], self._timeouts):
            rows += page
        return rows

    async def turn(self, turn: int | None = None, *, message: str | None = None) -> TurnView:
        """What became of a turn, or of the message with that id; of the latest turn where none is named. Answered by a
        worker; raises `ClientError` for one that isn't known."""
        query = {"turn": turn, "message": message}
        return await self._query("turn", {k: v for k, v in query.items() if v is not None}, TurnView, self._timeouts)

    async def wait_turn(self, turn: int | None = None, *, message: str | None = None, every: float = POLL) -> TurnView:
        """Wait until a turn is over: `done`, `failed` or `interrupted`. Looks at the run every so many seconds, and
        asks a worker only where something has changed; nothing is written to history.

        Raises `RunClosed` where the run ends before.
        """
        known: object = None
        while True:
            info = (await self._describe()).workflow_execution_info
            running = info.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING
            state = (info.execution.run_id, info.history_length, running)
            if state != known:
                found = await self.turn(turn, message=message)
                if found.state not in ("queued", "running"):
                    return found
                known = state
            if not running:
                raise RunClosed(f"run {self.id!r} has ended before the turn was over: see `perdure show {self.id}`")
            await asyncio.sleep(every)

    async def live(self) -> list[LiveText]:
        """What the run's activities say right now. Needs no worker's answer and writes no history."""
        return await self._live(await self._describe())

    async def describe(self) -> RunSummary:
        """The run as the server knows it."""
        return summary((await self._describe()).workflow_execution_info)

    async def follow(self, *, every: float = POLL) -> AsyncIterator[Progress]:
        """Look at the run again and again until it has ended. The last item may hold entries, too."""
        seen, known, running = 0, ("", -1), True
        while running:
            described = await self._describe()
            info = described.workflow_execution_info
            running = info.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING
            entries: list[Json] = []
            why = ""
            now = (info.execution.run_id, info.history_length)
            if now != known:
                try:
                    entries = await self._entries(seen, self._timeouts[:1] if running else self._timeouts)
                    known = now
                except NoAnswer as error:
                    why = str(error)
            seen += len(entries)
            yield Progress(entries, await self._live(described), not why, why)
            if running:
                await asyncio.sleep(every)

    async def _entries(self, start: int, timeouts: Sequence[float]) -> list[Json]:
        entries: list[Json] = []
        while True:
            page = await self._query("transcript", {"start": start + len(entries)}, TranscriptPage, timeouts)
            entries += page.entries
            if start + len(entries) >= page.total or not page.entries:
                return entries

    async def _query(self, name: str, argument: Any, result_type: type[T], timeouts: Sequence[float]) -> T:
        for seconds in timeouts:
            try:
                args = [] if argument is None else [argument]
                timeout = timedelta(seconds=seconds)
                with readable():
                    return await self._handle.query(name, args=args, result_type=result_type, rpc_timeout=timeout)
            except WorkflowQueryFailedError as error:
                raise ClientError(f"run {self.id!r} doesn't answer the query {name!r}: {error}") from error
            except RPCError as error:
                if error.status == RPCStatusCode.FAILED_PRECONDITION:
                    await asyncio.sleep(0.1)  # answered at once: no workflow task has been done yet, or no worker
                elif error.status not in LOST:
                    raise missing(self.id, error) from error
        raise NoAnswer(await why_unanswered(self._client, await self._describe()))

    async def _describe(self) -> DescribeWorkflowExecutionResponse:
        """Temporal's own `describe()` fails on a paused workflow, so this asks the service."""
        request = DescribeWorkflowExecutionRequest(
            namespace=self._client.namespace, execution=WorkflowExecution(workflow_id=self.id)
        )
        try:
            return await self._client.workflow_service.describe_workflow_execution(request, retry=True)
        except RPCError as error:
            raise missing(self.id, error) from error

    async def _live(self, described: DescribeWorkflowExecutionResponse) -> list[LiveText]:
        texts: list[LiveText] = []
        for pending in described.pending_activities:
            if not pending.heartbeat_details.payloads:
                continue
            (beat, *_) = await self._client.data_converter.decode(pending.heartbeat_details.payloads)
            if isinstance(beat, dict):
                fields = cast("Json", beat)
                texts.append(LiveText(pending.activity_type.name, fields.get("attempt", 1), fields.get("text", "")))
        return texts


def summary(info: WorkflowExecutionInfo) -> RunSummary:
    """Temporal's own description of a run, in short."""
    agent = info.search_attributes.indexed_fields.get("AgentName")
    status = WorkflowExecutionStatus.Name(info.status).removeprefix("WORKFLOW_EXECUTION_STATUS_").lower()
    return RunSummary(
        id=info.execution.workflow_id,
        agent=str(json.loads(agent.data)) if agent is not None else "",
        status=status,
        started=info.start_time.ToDatetime(UTC),
        closed=info.close_time.ToDatetime(UTC) if info.HasField("close_time") else None,
        task_queue=info.task_queue,
    )
