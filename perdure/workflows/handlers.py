"""Everything that can be asked of a run or sent to it while it is open: queries, updates and signals.

Each verb is an update and a signal of one name and with one argument. The update is checked by its validator and
answered; the signal is for those who don't wait, and what is wrong with it is kept in `rejected`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import (
        MAX_PAYLOAD,
        AuditQuery,
        Decided,
        Heard,
        Json,
        NewLimits,
        NewModel,
        StatusView,
        TranscriptPage,
        TranscriptQuery,
        TurnQuery,
        TurnView,
    )
    from perdure.errors import InvalidRequest
    from perdure.workflows import details, messages, reports, setting, turns, verbs
    from perdure.workflows.entry import one_argument, refusal, typed
    from perdure.workflows.state import RunState

QUERIES = "status, transcript, pending, audit, turn"


class Handlers:
    """The handlers of `AgentWorkflow`."""

    _state: RunState

    @workflow.query(description="State, usage and open calls of the run")
    def status(self, *raw: Any) -> StatusView:
        """No argument is needed; one is ignored."""
        return details.status(self._state)

    @workflow.query(description='The conversation, in pages: {"start": 0, "max_bytes": 1500000}')
    def transcript(self, *raw: Any) -> TranscriptPage:
        """Without an argument: from the start."""
        query = one_argument(raw, TranscriptQuery) if raw else TranscriptQuery()
        return self._state.transcript.page(query)

    @workflow.query(description='Who decided what, as far as it fits: {"start": 0}')
    def audit(self, *raw: Any) -> list[Json]:
        """What was asked, who decided it, what became of it, in order. Without an argument: from the start."""
        query = one_argument(raw, AuditQuery) if raw and isinstance(raw[0], dict) else AuditQuery()
        return self._state.audit.page(query.start, MAX_PAYLOAD)

    @workflow.query(description="What waits for a decision or a result")
    def pending(self, *raw: Any) -> list[Json]:
        """Each with its key, arguments, approvers and expiry."""
        return details.pending(self._state)

    @workflow.query(description='What became of a turn or a message: {"turn": 1} or {"message": "…"}')
    def turn(self, *raw: Any) -> TurnView:
        """Without an argument: the latest turn."""
        query = one_argument(raw, TurnQuery) if raw and isinstance(raw[0], dict) else TurnQuery()
        return turns.find(self._state, query)

    @workflow.update(name="send", description='{"content": "…", "when_busy": "queue", "id": "…"}')
    async def send(self, *raw: Any) -> TurnView:
        """A message to the agent: queued, steering or interrupting. A repeat of its id changes nothing."""
        return await typed(_at_once(messages.send, self._state, raw))

    @send.validator
    def check_send(self, *raw: Any) -> None:
        """Refused here, nothing is recorded."""
        refusal(messages.check_send, self._state, raw)

    @workflow.update(name="interrupt", description='{"by": "…", "reason": "…"}')
    async def interrupt(self, *raw: Any) -> Heard:
        """End the running turn; the session goes on."""
        return await typed(_at_once(messages.interrupt, self._state, raw))

    @interrupt.validator
    def check_interrupt(self, *raw: Any) -> None:
        """Refused here, nothing is recorded."""
        refusal(messages.check_interrupt, self._state, raw)

    @workflow.update(name="close", description='{"by": "…", "reason": "…"}')
    async def close(self, *raw: Any) -> Heard:
        """Take no further message, and complete when those that wait have their answer."""
        return await typed(_at_once(messages.close, self._state, raw))

    @close.validator
    def check_close(self, *raw: Any) -> None:
        """Refused here, nothing is recorded."""
        refusal(messages.check_close, self._state, raw)

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

    @workflow.update(name="set_limits", description='{"limits": {"requests": 100}, "by": "…"}')
    async def set_limits(self, *raw: Any) -> NewLimits:
        """Change limits; a run that waits for one goes on."""
        return await typed(setting.set_limits(self._state, raw, "update"))

    @set_limits.validator
    def check_set_limits(self, *raw: Any) -> None:
        """Refused here, nothing is recorded."""
        refusal(setting.check_limits, self._state, raw)

    @workflow.update(name="set_model", description='{"model": "…", "by": "…"}')
    async def set_model(self, *raw: Any) -> NewModel:
        """Use another of the agent's models from the next request on."""
        return await typed(setting.set_model(self._state, raw, "update"))

    @set_model.validator
    def check_set_model(self, *raw: Any) -> None:
        """Refused here, nothing is recorded."""
        refusal(setting.check_model, self._state, raw)

    @workflow.signal(name="send", description='{"content": "…", "when_busy": "queue", "id": "…"}')
    def send_signal(self, *raw: Any) -> None:
        """As the update, for those who don't wait."""
        self._receive("send", lambda: messages.send(self._state, raw))

    @workflow.signal(name="interrupt", description='{"by": "…", "reason": "…"}')
    def interrupt_signal(self, *raw: Any) -> None:
        """As the update, for those who don't wait."""
        self._receive("interrupt", lambda: messages.interrupt(self._state, raw))

    @workflow.signal(name="close", description='{"by": "…", "reason": "…"}')
    def close_signal(self, *raw: Any) -> None:
        """As the update, for those who don't wait."""
        self._receive("close", lambda: messages.close(self._state, raw))

    @workflow.signal(name="approve", description='{"call": "3.1-9f3c", "by": "…"}')
    def approve_signal(self, *raw: Any) -> None:
        """As the update, for those who don't wait."""
        self._receive("approve", lambda: verbs.arrive(self._state, "approve", raw, "signal"))

    @workflow.signal(name="deny", description='{"call": "3.1-9f3c", "by": "…", "reason": "…"}')
    def deny_signal(self, *raw: Any) -> None:
        """As the update, for those who don't wait."""
        self._receive("deny", lambda: verbs.arrive(self._state, "deny", raw, "signal"))

    @workflow.signal(name="complete", description='{"call": "3.1-9f3c", "result": …}')
    def complete_signal(self, *raw: Any) -> None:
        """As the update, for those who don't wait."""
        self._receive("complete", lambda: verbs.arrive(self._state, "complete", raw, "signal"))

    @workflow.signal(name="set_limits", description='{"limits": {"requests": 100}, "by": "…"}')
    async def set_limits_signal(self, *raw: Any) -> None:
        """As the update, for those who don't wait."""
        await self._receive_later("set_limits", setting.set_limits(self._state, raw, "signal"))

    @workflow.signal(name="set_model", description='{"model": "…", "by": "…"}')
    async def set_model_signal(self, *raw: Any) -> None:
        """As the update, for those who don't wait."""
        await self._receive_later("set_model", setting.set_model(self._state, raw, "signal"))

    @workflow.signal(name="report", description="From runs that this run has started: what waits in them")
    def report_signal(self, *raw: Any) -> None:
        """For runs, not for people."""
        self._receive("report", lambda: reports.take(self._state, raw))

    async def _receive_later(self, verb: str, taking: Awaitable[Any]) -> None:
        try:
            await taking
        except Exception as error:
            self._state.reject(verb, str(error), workflow.now())

    def _receive(self, verb: str, take: Callable[[], Any]) -> None:
        """Take a signal, or keep it in `rejected` with the reason: a signal has no answer."""
        try:
            take()
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


async def _at_once(take: Callable[[RunState, tuple[Any, ...]], Any], state: RunState, raw: tuple[Any, ...]) -> Any:
    """The answer of an update that waits for nothing."""
    return take(state, raw)
