"""The workflow that runs every agent.

It is started with a `RunRequest`, asks a worker what it knows of the agent, and then alternates model requests and
tool calls, each an activity, until the agent has an output. It holds no user code: it interprets the plans that
activities return, so a deploy of an agent can't break a replay. A session stays open for further messages, and when
its history has grown long enough it continues as new, under the same workflow id. It ends with a `RunResult`, a typed
failure, or canceled; every tool call of its transcript then has exactly one outcome.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, NoReturn

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import MAX_PAYLOAD, WORKFLOW_TYPE, Json, Message, RunRequest, RunResult
    from perdure.errors import InternalError, InvalidRequest, PerdureError
    from perdure.workflows import budget, carry, details, requests, rooms, upward
    from perdure.workflows.entry import one_argument, typed
    from perdure.workflows.handlers import Handlers
    from perdure.workflows.rollover import RollOver
    from perdure.workflows.session import run_session
    from perdure.workflows.sizes import check_request, fitting_result
    from perdure.workflows.state import RunState
    from perdure.workflows.turns import PROMPT_ID

END_PATIENCE = timedelta(seconds=5)
"""What notifications that are under way get when the run ends."""


@workflow.defn(name=WORKFLOW_TYPE)
class AgentWorkflow(Handlers):
    """Runs any agent of the task queue's workers. See the module."""

    @workflow.init
    def __init__(self, *raw: Any) -> None:
        """Take up what the run is asked for, or what an earlier run of the chain has carried along: handlers run before
        `run` does, and have to know it. Raised here, an error would fail the workflow task for ever, so `run` does."""
        self._problem: PerdureError | None = None
        self._again: asyncio.Task[None] | None = None
        self._state = RunState()
        try:
            if len(raw) > 1 and workflow.info().continued_run_id:
                self._state = carry.restored(one_argument(raw[:1], RunRequest), raw[1], raw[2:])
            else:
                self._begin(one_argument(raw, RunRequest))
        except InvalidRequest as problem:
            self._problem = problem
        except Exception as error:
            self._problem = InternalError(f"{type(error).__name__}: {error}")
            if len(raw) > 1:
                self._problem = InvalidRequest(f"what the run has carried along can't be read: {error}")

    def _begin(self, request: RunRequest) -> None:
        """The state of a run that hasn't done anything yet: its prompt waits for its turn, as any message."""
        state, now = self._state, workflow.now()
        state.request, state.started = request, now
        state.model = state.next_model = request.model
        if request.prompt is not None:
            state.queue.append(Message(id=PROMPT_ID, content=request.prompt, at=now, checked=True))

    @workflow.run
    async def run(self, *raw: Any) -> RunResult:
        """The one argument is a `RunRequest`; a run that continues has further ones."""
        return await typed(self._run(raw))

    async def _run(self, raw: tuple[Any, ...]) -> RunResult:
        state = self._state
        if self._problem is not None:
            raise self._problem
        if state.chain == 0:
            check_request(raw[0])
        try:
            await self._take_up()
            await run_session(state)
            result = fitting_result(self._result())
        except RollOver:
            self._continue()
        except asyncio.CancelledError:
            if workflow.cancellation_reason() is not None:  # else the worker only forgets this instance
                await self._end()
                await upward.cancelled(state)
            raise
        except Exception as error:
            await self._end()
            raise upward.failure(state, error) from None
        await self._end()
        return result

    async def _take_up(self) -> None:
        """Get ready to begin, or to go on. In a run that continues a cancel doesn't end it here, where calls are open
        that nobody would answer: it is raised again where the turn is."""
        state = self._state
        try:
            await self._prepare()
            if state.early:
                await workflow.wait_condition(lambda: not state.early)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not state.chain or task is None or workflow.cancellation_reason() is None:
                raise
            self._again = asyncio.create_task(_cancel_at_rest(task))

    async def _prepare(self) -> None:
        """Ask a worker what it knows of the agent; in a run that continues, what it knows now."""
        state = self._state
        assert state.request is not None
        if state.chain:
            await requests.prepare_again(state, state.request)
            return
        state.plan = await requests.prepare_run(state, state.request)
        state.limits = budget.lowered(state.plan.limits, state.request.limits)
        if state.request.within is not None:
            state.limits = rooms.lower(state.limits, state.request.within.room)
        self._open_transcript(state.request)

    def _open_transcript(self, request: RunRequest) -> None:
        """The first entry: what the run is about."""
        start: Json = {"kind": "start", "agent": request.agent, "at": workflow.now().isoformat()}
        start |= {"params": request.params} if request.params is not None else {}
        start |= {"metadata": request.metadata} if request.metadata else {}
        self._state.transcript.append(start)

    def _continue(self) -> NoReturn:
        """Continue as new. Nothing is open, and whoever sends something now is asked to send it again."""
        workflow.continue_as_new(args=carry.arguments(self._state), memo=workflow.memo())

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

    def _result(self) -> RunResult:
        state = self._state
        outputs = [turn.output for turn in state.turns if turn.output is not None]
        last = outputs[-1] if outputs else None
        most = 0 if upward.above(state) else MAX_PAYLOAD  # history has it already, once is enough
        return RunResult(
            output=last.value if last else None,
            output_type=last.type if last else None,
            failure=state.failure,
            usage=state.usage,
            turns=state.turn,
            steps=state.step,
            audit=state.audit.page(0, MAX_PAYLOAD) if state.audit.size <= most else [_left_out(state)],
        )


async def _cancel_at_rest(task: asyncio.Task[Any]) -> None:
    """Cancel it when everything has got as far as it can: a task that is cancelled before its first step never runs."""
    await workflow.wait_condition(lambda: True)
    task.cancel()


def _left_out(state: RunState) -> Json:
    return {"left_out": state.audit.length}
