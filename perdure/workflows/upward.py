"""What a run tells the one that started it: what waits in it, what it has used, and why it failed.

By a signal where what waits has changed: the one way that lets whoever looks at the run above see it, by any client and
in the Web UI, and that keeps the clocks of the run above right. It costs about five events in each of the two runs, a
few hundred bytes beside the rows, and nothing while nothing changes. Changes that come while one is being told are told
together. What a run has used comes with its result or failure, and with a signal where it is cancelled, since Temporal
carries nothing of a workflow that ends so.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import MAX_DETAILS, Json, Report, Usage, args_digest, payload_size
    from perdure.workflows.entry import as_failure
    from perdure.workflows.state import RunState

REPORT = "report"
"""The signal."""
MAX_ROWS = 20
MAX_ARGS = 500
"""Bytes of the arguments, and of the metadata, of a row: the run itself shows them whole."""
MAX_NAMES = 20
"""Approvers and votes of a row."""
USED = "perdure_usage"
"""The key of the usage in the last detail of the failure of a run that another one started."""


def above(state: RunState) -> str:
    """The id of the run that started this one; empty = nobody, or another workflow."""
    parent = workflow.info().parent
    return parent.workflow_id if parent and state.request and state.request.within else ""


def rows(pending: list[Json]) -> list[Json]:
    """Rows of `pending` as they are told: those of this run with its id, each bounded."""
    own = workflow.info().workflow_id
    return [_short({"workflow_id": own} | row) for row in pending[:MAX_ROWS]]


def _short(row: Json) -> Json:
    more: Json = {}
    for name in ("args", "metadata"):
        size = payload_size(row.get(name))
        if size > MAX_ARGS:
            more[name] = {"left_out": f"{size} bytes: the run {row['workflow_id']!r} shows them"}
    more |= {name: row[name][:MAX_NAMES] for name in ("approvers", "votes") if name in row}
    return row | more


def changed(state: RunState, pending: list[Json]) -> None:
    """Tell the run above what waits now, if that isn't what it knows."""
    told = rows(pending)
    works = bool(told) and not state.only_waits
    digest = args_digest([told, works])
    if digest == state.reported or not (told or state.reported):
        return
    state.reported, state.to_report = digest, Report(call=_call(state), pending=told, works=works)
    if state.reporting is None or state.reporting.done():
        state.reporting = asyncio.create_task(_report(state))


async def _report(state: RunState) -> None:
    """Tell what is to be told, until nothing is. A run doesn't continue as new meanwhile."""
    state.activities += 1
    try:
        while state.to_report is not None:
            report, state.to_report = state.to_report, None
            await _send(state, report)
    finally:
        state.activities -= 1


def _call(state: RunState) -> str:
    return state.request.within.call if state.request and state.request.within else ""


async def _send(state: RunState, report: Report) -> None:
    report = report.model_copy(update={"usage": state.usage})
    try:
        await workflow.get_external_workflow_handle(above(state)).signal(REPORT, report)
    except FailureError:
        workflow.logger.info("the run above has ended, or can't be told what waits")


async def cancelled(state: RunState) -> None:
    """Tell the run above what this one has used, whose cancellation can't say so; then nothing waits in it any more."""
    if above(state):
        await _send(state, Report(call=_call(state)))


def failure(state: RunState, error: Exception) -> Exception:
    """What a run fails with: of one that another run started, with what it has used."""
    if not above(state):
        return error
    failed = error if isinstance(error, FailureError) else as_failure(error)
    return _with_usage(failed, state.usage) if isinstance(failed, ApplicationError) else failed


def _with_usage(failure: ApplicationError, usage: Usage) -> ApplicationError:
    used = {USED: usage.model_dump(mode="json")}
    details = [*failure.details, used] if payload_size([*failure.details]) < MAX_DETAILS else [used]
    return ApplicationError(failure.message, *details, type=failure.type, non_retryable=True)


def used_by(failure: ApplicationError) -> Usage | None:
    """What a run has used that has failed so; `None` = it doesn't say."""
    last: Any = failure.details[-1] if failure.details else None
    try:
        return Usage.model_validate(last[USED]) if isinstance(last, dict) and USED in last else None
    except ValueError:
        return None
