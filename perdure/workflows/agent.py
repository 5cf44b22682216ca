"""The workflow that runs every agent.

It is started with a `RunRequest`, asks a worker what it knows of the agent, and then alternates model requests and
tool calls, each an activity, until the agent has an output. It holds no user code: it interprets the plans that
activities return, so a deploy of an agent can't break a replay. It ends with a `RunResult`, a typed failure, or
canceled; every tool call of its transcript then has exactly one outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import (
        WORKFLOW_TYPE,
        AuditQuery,
        Decided,
        Json,
        Output,
        RunRequest,
        RunResult,
        StatusView,
        TranscriptPage,
        TranscriptQuery,
        VerbName,
    )
    from perdure.errors import InvalidRequest, LimitExceeded
    from perdure.workflows import budget, details, requests, verbs
    from perdure.workflows.entry import one_argument, refusal, typed
    from perdure.workflows.sizes import check_request, fitting_result, fitting_rows
    from perdure.workflows.state import RunState
    from perdure.workflows.turn import run_turn

END_PATIENCE = timedelta(seconds=5)
"""What notifications that are under way get when the run ends."""
QUERIES = "status, transcript, pending, audit"


@workflow.defn(name=WORKFLOW_TYPE)
class AgentWorkflow:
    """Runs any agent of the task queue's workers. See the module."""

    def __init__(self) -> None:
        self._state = RunState()

    @workflow.query(description="State, usage and open calls of the run")
    def status(self, *raw: Any) -> StatusView:
        """No argument is needed; one is ignored."""
        return details.status(self._state)

    @workflow.query(description='The conversation, in pages: {"start": 0, "max_bytes": 1500000}')
    def transcript(self, *raw: Any) -> TranscriptPage:
        """Without an argument: from the start."""
        query = one_argument(raw, TranscriptQuery) if raw else TranscriptQuery()
        return self._state.transcript.page(query.start, query.max_bytes)

    @workflow.query(description='Who decided what, as far as it fits: {"start": 0}')
    def audit(self, *raw: Any) -> list[Json]:
        """What was asked, who decided it, what became of it, in order. Without an argument: from the start."""
        query = one_argument(raw, AuditQuery) if raw and isinstance(raw[0], dict) else AuditQuery()
        return fitting_rows(self._state.audit[query.start :])

    @workflow.query(description="What waits for a decision or a result")
    def pending(self, *raw: Any) -> list[Json]:
        """Each with its key, arguments, approvers and expiry."""
        return details.pending(self._state)

    @workflow.update(name="approve", description='{"call": "3.1-9f3c", "by": "…"}')
    async def approve(self, *raw: Any) -> Decided:
        """Let a call run."""
        return await typed(verbs.by_update(self._state, "approve", raw))

    @approve.validator
    def check_approve(self, *raw: Any) -> None:
        """Refused here, nothing is recorded."""
        refusal(verbs.check, self._state, "approve", raw)

    @workflow.update(name="deny", description='{"call": "3.1-9f3c", "by": "…", "reason": "…"}')
    async def deny(self, *raw: Any) -> Decided:
        """Don't let a call run; the model is told the reason."""
        return await typed(verbs.by_update(self._state, "deny", raw))

    @deny.validator
    def check_deny(self, *raw: Any) -> None:
        """Refused here, nothing is recorded."""
        refusal(verbs.check, self._state, "deny", raw)

    @workflow.update(name="complete", description='{"call": "3.1-9f3c", "result": …}')
    async def complete(self, *raw: Any) -> Decided:
        """The result of a call that was made outside, or the answer to a question."""
        return await typed(verbs.by_update(self._state, "complete", raw))

    @complete.validator
    def check_complete(self, *raw: Any) -> None:
        """Refused here, nothing is recorded."""
        refusal(verbs.check, self._state, "complete", raw)

    @workflow.signal(name="approve", description='{"call": "3.1-9f3c", "by": "…"}')
    def approve_signal(self, *raw: Any) -> None:
        """As the update, for those who don't wait."""
        self._receive("approve", raw)

    @workflow.signal(name="deny", description='{"call": "3.1-9f3c", "by": "…", "reason": "…"}')
    def deny_signal(self, *raw: Any) -> None:
        """As the update, for those who don't wait."""
        self._receive("deny", raw)

    @workflow.signal(name="complete", description='{"call": "3.1-9f3c", "result": …}')
    def complete_signal(self, *raw: Any) -> None:
        """As the update, for those who don't wait."""
        self._receive("complete", raw)

    def _receive(self, verb: VerbName, raw: tuple[Any, ...]) -> None:
        """Put a signal in line, or keep it in `rejected` with the reason: a signal has no answer."""
        try:
            verbs.arrive(self._state, verb, raw, "signal")
        except Exception as error:
            self._state.reject(verb, str(error), workflow.now())

    @workflow.query(dynamic=True)
    def unknown_query(self, name: str, args: Sequence[RawValue]) -> Any:
        """Any other query: says which are known."""
        raise InvalidRequest(f"there is no query {name!r}. Known queries: {QUERIES}")

    @workflow.signal(dynamic=True)
    def unknown_signal(self, name: str, args: Sequence[RawValue]) -> None:
        """Any signal: kept in `rejected` of the query `status`, since a signal has no answer."""
        self._state.reject(name, f"there is no signal {name!r}", workflow.now())

    @workflow.update(dynamic=True)
    async def unknown_update(self, name: str, args: Sequence[RawValue]) -> Any:
        """Never runs: the validator refuses."""
        return None

    @unknown_update.validator
    def refuse_update(self, name: str, args: Sequence[RawValue]) -> None:
        """Any update: refused, and nothing is recorded."""
        raise InvalidRequest(f"there is no update {name!r} in this version")

    @workflow.run
    async def run(self, *raw: Any) -> RunResult:
        """The one argument is a `RunRequest`."""
        return await typed(self._run(raw))

    async def _run(self, raw: tuple[Any, ...]) -> RunResult:
        state = self._state
        state.started = workflow.now()
        state.request = one_argument(raw, RunRequest)
        check_request(state.request)
        try:
            result = fitting_result(self._result(await self._turn_within_deadline()))
        except asyncio.CancelledError:
            if workflow.cancellation_reason() is not None:  # else the worker only forgets this instance
                await self._end()
            raise
        except Exception:
            await self._end()
            raise
        await self._end()
        return result

    async def _end(self) -> None:
        """Show that the run is over, however it ends, and let what was accepted be answered and told."""
        state = self._state
        state.done = True
        details.begins(state)

        def all_told() -> bool:
            return workflow.all_handlers_finished() and all(task.done() for task in state.notices)

        if not all_told():
            try:
                await workflow.wait_condition(all_told, timeout=END_PATIENCE)
            except TimeoutError:
                workflow.logger.warning("the run ends before every notification was sent")

    async def _turn_within_deadline(self) -> Output:
        state = self._state
        request = state.request
        assert request is not None
        state.plan = await requests.prepare_run(request)
        state.limits = budget.lowered(state.plan.limits, request.limits)
        self._open_transcript(request)
        details.begins(state)
        if state.limits.deadline is None:
            return await run_turn(state)
        try:
            gone = workflow.now() - (state.started or workflow.now())
            async with asyncio.timeout((state.limits.deadline - gone).total_seconds()):
                return await run_turn(state)
        except TimeoutError as error:
            raise LimitExceeded(f"the run's deadline of {state.limits.deadline} has passed") from error

    def _open_transcript(self, request: RunRequest) -> None:
        """The first entries: what the run is about, and the prompt."""
        at = workflow.now().isoformat()
        start: Json = {"kind": "start", "agent": request.agent, "at": at}
        start |= {"params": request.params} if request.params is not None else {}
        start |= {"metadata": request.metadata} if request.metadata else {}
        self._state.transcript.append(start)
        self._state.transcript.append({"kind": "user", "content": request.prompt, "at": at})

    def _result(self, output: Output) -> RunResult:
        state = self._state
        return RunResult(
            output=output.value,
            output_type=output.type,
            usage=state.usage,
            turns=state.turn,
            steps=state.step,
            audit=state.audit,
        )
