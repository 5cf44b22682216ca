"""One turn: steps of a model request and its tool calls, until there is an output."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import (
        CallOutcome,
        Fault,
        Json,
        Output,
        PlannedCall,
        Settlement,
        Step,
        bounded_details,
        cut,
        told,
    )
    from perdure.errors import InternalError, LimitExceeded
    from perdure.workflows import (
        budget,
        calls,
        compaction,
        contents,
        details,
        handoff,
        limiting,
        requests,
        rollover,
        turns,
        warned,
    )
    from perdure.workflows.answers import chunks, outcome_entry
    from perdure.workflows.cancelling import cancelled, raise_if_cancelled
    from perdure.workflows.retries import next_retries
    from perdure.workflows.schedule import segments
    from perdure.workflows.state import RunState, StepInProgress
    from perdure.workflows.waiting import asked_by_tool, decided_call, resumed_call

MAX_HISTORY = 48_000
"""Events of a run; the server terminates one at 51,200."""
MAX_HISTORY_BYTES = 45_000_000
"""Bytes of a run's history; the server terminates one at 50 MB."""
UNSETTLED = "The run ended before this output was looked at."


async def run_turn(state: RunState) -> Output:
    """Run steps until one has an output. Raises what ends the turn; by then every call has its outcome. Raises
    `RollOver` between two steps, where the run should continue as new first."""
    while True:
        raise_if_cancelled()
        if state.current is None:
            await rollover.between_steps(state)
            await limiting.within(state, lambda: limiting.before_request(state))
            await contents.check_joining(state)
            turns.join(state)
            await compaction.compact_if_due(state)
            await limiting.within(state, lambda: limiting.before_request(state))
            if not await _begin_step(state):
                continue
        output = await _finish_step(state)
        raise_if_cancelled()
        if output is not None:
            return output


async def _begin_step(state: RunState) -> bool:
    """Ask the model, and record its response. False where it wasn't asked: the request is too large for its limit."""
    _check_history()
    state.step += 1
    state.endpoints.clear()
    state.model, state.counted_input = state.next_model, 0
    details.show(state)
    step = await requests.model_request(state)
    state.progressed = True
    if step.counted_input is not None:
        state.step -= 1
        state.counted_input = step.counted_input
        return False
    state.usage = budget.add_usage(state.usage, step.usage)
    compaction.measure(state, step.usage)
    warned.warn(state, step.warnings)
    if step.entry is not None:
        state.transcript.append(step.entry)
    state.transcript.told()
    state.current = StepInProgress(step.model_copy(update={"entry": None}))
    state.failing = False
    return True


def _check_history() -> None:
    info = workflow.info()
    events, size = info.get_current_history_length(), info.get_current_history_size()
    if events > MAX_HISTORY or size > MAX_HISTORY_BYTES:
        raise LimitExceeded(f"the run's history has {events} events and {size} bytes, close to where Temporal ends it")


@dataclass
class Answers:
    """What answers the calls of a step, as far as it has got."""

    outcomes: list[CallOutcome] = field(default_factory=list[CallOutcome])
    settlement: Settlement = field(default_factory=Settlement)
    error: Fault | None = None


async def _finish_step(state: RunState) -> Output | None:
    """Run the calls of the step in progress and settle its output. Returns the output, if there is one."""
    current = state.current
    if current is None:
        raise InternalError("there is no step to finish")
    step = current.step
    answers = Answers(settlement=Settlement(output=step.output), error=step.error)
    try:
        await _answer(state, current, answers)
    except (Exception, asyncio.CancelledError):  # no `finally`: that also runs when an instance is forgotten
        _record(state, step, answers)
        raise
    _record(state, step, answers)
    raise_if_cancelled()
    if answers.error is not None:
        raise failure_of(answers.error)
    return answers.settlement.output


async def _answer(state: RunState, current: StepInProgress, answers: Answers) -> None:
    step = current.step
    if answers.error is not None:
        return
    if not current.outcomes and not current.waits:
        calls, sent = len(step.calls), step.usage.input_tokens
        await limiting.within(state, lambda: limiting.before_calls(state, calls, sent))
    answers.outcomes = await _run_calls(state, current)
    answers.error = next((outcome.error for outcome in answers.outcomes if outcome.error), None)
    if answers.error is None and step.settle == "after_calls" and not cancelled():
        answers.settlement = await requests.settle(state, retried=_has_retried(step, answers.outcomes))
        state.usage = budget.add_usage(state.usage, answers.settlement.usage)
        answers.error = answers.settlement.error


async def _run_calls(state: RunState, current: StepInProgress) -> list[CallOutcome]:
    """Run the calls, segment by segment, and return an outcome for each, in call order, also when cancelled.

    A call that ends the run lets its running siblings end; those not yet begun don't begin, and nothing waits any more.
    """
    outcomes = current.outcomes
    state.slots = asyncio.Semaphore(state.plan.max_parallel_calls if state.plan else 1)

    async def finish(call: PlannedCall) -> None:
        outcome = await _run_call(state, call, current)
        outcomes[call.key] = outcome
        state.progressed = True
        state.failing = state.failing or outcome.error is not None
        state.usage = budget.add_usage(state.usage, outcome.usage)

    for segment in segments(current.step.calls):
        if cancelled():  # also by a cancel that came while the model was asked
            break
        try:
            await asyncio.gather(*(finish(call) for call in segment if call.key not in outcomes))
        except asyncio.CancelledError:
            break  # the turn was cancelled: the running calls have ended, `raise_if_cancelled` ends it
    return [outcomes.get(call.key) or _not_begun(call) for call in current.step.calls]


async def _run_call(state: RunState, call: PlannedCall, current: StepInProgress) -> CallOutcome:
    if handoff.is_ignored(current.step, call):
        return told(call, "failed", handoff.IGNORED)
    if call.action == "unknown":
        return told(call, "failed", "This version of perdure can't do what was planned for this call.")
    waited = next((waiting for waiting in current.waits if waiting.origin == call.key), None)
    try:
        if waited is not None:
            return await resumed_call(state, waited)
        if state.failing:
            return _not_begun(call)
        if call.action != "run":
            return await decided_call(state, call)
        async with state.slots:
            if state.failing:
                return _not_begun(call)
            outcome = await calls.tool_call(state, call)
        if outcome.kind in ("needs_approval", "deferred"):
            return await decided_call(state, asked_by_tool(call, outcome))
        return outcome
    except asyncio.CancelledError:
        return _not_begun(call)


def _not_begun(call: PlannedCall) -> CallOutcome:
    return told(call, "cancelled", "The call never began: the run was ending.")


def _has_retried(step: Step, outcomes: Sequence[CallOutcome]) -> bool:
    return step.retried or any(outcome.kind == "retried" for outcome in outcomes)


def _record(state: RunState, step: Step, answers: Answers) -> None:
    """Append what answers the step's calls, and count the retries: the step is no longer in progress."""
    state.current = None
    outcomes, settlement = answers.outcomes, answers.settlement
    state.retries = next_retries(state.retries, step.retries, outcomes)
    state.retries = next_retries(state.retries, settlement.retries, [])
    parts = [*step.parts, *settlement.parts]
    done = {outcome.key for outcome in outcomes}
    every = [*outcomes, *(_not_begun(call) for call in step.calls if call.key not in done)]
    rows = [("parts", part) for part in parts] + [("outcomes", outcome_entry(outcome)) for outcome in every]
    if not settlement.parts:
        rows += [("outcomes", {**output, "kind": "cancelled", "text": UNSETTLED}) for output in step.outputs]
    if not rows:
        return
    every_chunk = chunks(rows)
    for chunk in every_chunk:
        entry: Json = {"kind": "outcomes", "step": state.step, "at": workflow.now().isoformat()}
        for name, row in chunk:
            entry.setdefault(name, []).append(row)
        if chunk is not every_chunk[-1]:
            entry["more"] = True
        state.transcript.append(entry)
    handoff.apply(state, step, outcomes)


def failure_of(fault: Fault) -> ApplicationError:
    """What a run ends with where the agent itself ended it."""
    return ApplicationError(cut(fault.message), *bounded_details(fault.details), type=fault.type, non_retryable=True)
