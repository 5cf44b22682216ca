"""The activity `tool:<name>`: one tool call through the user's agent, answered with its outcome.

It never fails for what a tool does: everything is an outcome in its result, since a failed activity loses data and is
repeated. It fails only where Temporal should repeat it (a retryable tool with attempts left) or where it never began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pydantic_ai import DeferredToolResults, ToolApproved
from temporalio import activity
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from perdure.activities import moved
from perdure.activities.call_outcome import deferred, outcome_of_error, outcome_of_run
from perdure.activities.drive import Place, advance, at_calls, only_call, opened, place
from perdure.activities.faults import log_error
from perdure.activities.large_result import Bounds
from perdure.activities.live import heartbeats
from perdure.activities.results import results_of_this_run
from perdure.activities.runtime import Runtime, not_run
from perdure.activities.seam import Collected, Elsewhere, Seam
from perdure.context import CurrentCall, Live, enter_binding, enter_call
from perdure.contracts import MAY_HAVE_RUN, TOOL_ACTIVITY_PREFIX, CallOutcome, Fault, PlannedCall, ToolInput, told
from perdure.errors import InternalError
from perdure.toolsets.read_result import is_reader


class ToolCalls:
    """Holds what the worker has opened; its method is the dynamic activity that serves every `tool:<name>`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @activity.defn(dynamic=True)
    async def tool_call(self, args: Sequence[RawValue]) -> CallOutcome:
        """Run one call. See the module for when it raises."""
        info = activity.info()
        if not info.activity_type.startswith(TOOL_ACTIVITY_PREFIX) or len(args) != 1:
            raise ApplicationError(
                f"activity {info.activity_type!r} is not one of perdure's", type="NotFound", non_retryable=True
            )
        input: ToolInput = activity.payload_converter().from_payload(args[0].payload, ToolInput)
        if input.call.action != "run" and not input.approved:
            return told(input.call, "needs_approval", "The call may not run: there is no decision for it.")
        if input.call.options.effect == "unsafe" and info.attempt > 1:
            return told(input.call, "unknown", f"The call had begun before. {MAY_HAVE_RUN}")
        async with heartbeats() as live:
            try:
                here = await place(self._runtime, input)
            except Exception as error:
                log_error(f"before tool {input.call.tool!r} began", error)
                raise not_run(error, info.attempt) from None
            binding = enter_binding(input.bound)
            outcome = await self._if_available(input, here, live)
            return outcome.model_copy(update={"bound_queue": self._runtime.queue}) if binding.holds else outcome

    async def _if_available(self, input: ToolInput, here: Place, live: Live) -> CallOutcome:
        """Run the call unless the tool's breaker is open: then the call ends, and Temporal doesn't repeat it."""
        call, seam = input.call, Seam(collect=False, retries=here.retries.tools)
        circuit = self._runtime.circuits.of(input.agent, call.tool, here.durable.policy(call.tool).breaker)
        if circuit is None:
            return await _within_time(input, here, live, seam)
        passage = circuit.enter()
        if passage is None:
            return _unavailable(call, activity.info().attempt)
        try:
            return await _within_time(input, here, live, seam)
        finally:
            circuit.leave(passage, seam.health)


def _unavailable(call: PlannedCall, attempt: int) -> CallOutcome:
    earlier = "" if attempt == 1 else " An earlier attempt of this call failed, and may have had an effect."
    text = f"The tool {call.tool!r} is not available for now, since calls of it have failed: this one was not made."
    return told(call, "failed", text + earlier)


async def _within_time(input: ToolInput, here: Place, live: Live, seam: Seam) -> CallOutcome:
    """Run the call as a task of its own, so that one that doesn't end can be left behind."""
    call, options = input.call, input.call.options
    task = asyncio.create_task(_run(input, here, live, seam))
    try:
        done, _ = await asyncio.wait([task], timeout=options.timeout)
    except asyncio.CancelledError:
        return await _cancelled(input, task, seam)
    if done:
        return await task
    task.cancel()
    await asyncio.wait([task], timeout=options.grace)
    seam.health = "ill" if seam.began else "unclear"
    message = f"tool {call.tool!r} did not end within {options.timeout:g} s"
    activity.logger.warning("%s%s", message, "" if task.done() else "; what it started is still running")
    if options.on_timeout == "fail":
        return told(call, "unknown", MAY_HAVE_RUN, Fault(type="ToolTimeout", message=message))
    if options.on_timeout == "retry" and activity.info().attempt < options.attempts:
        raise ApplicationError(message, type="ToolTimeout")
    late = f"The call did not end within {options.timeout:g} s."
    if options.effect != "unsafe":
        return told(call, "failed", late)
    if task.done() and not seam.began:  # what is asked before it, a list of tools say, took its time
        return told(call, "failed", f"The call did not begin within {options.timeout:g} s. It was not run.")
    return told(call, "unknown", f"{late} {MAY_HAVE_RUN}")


async def _cancelled(input: ToolInput, task: asyncio.Task[CallOutcome], seam: Seam) -> CallOutcome:
    """Give the tool its time to end, then give it up. What it answers by then counts.

    An unsafe tool that had begun is `unknown`, also where it ended on the cancel: its effect may be done.
    """
    task.cancel()
    await asyncio.wait([task], timeout=input.call.options.grace)
    if task.done() and not task.cancelled():
        return task.result()
    details = activity.cancellation_details()
    if details is None or not details.cancel_requested:  # the worker stops, or the activity was paused or reset
        raise asyncio.CancelledError("the attempt was ended, not the call")
    effect = input.call.options.effect
    if seam.began and (effect == "unsafe" or (effect == "idempotent" and not task.done())):
        return told(input.call, "unknown", f"The call was cancelled while it ran. {MAY_HAVE_RUN}")
    return told(input.call, "cancelled", "The call was cancelled.")


async def _run(input: ToolInput, here: Place, live: Live, seam: Seam) -> CallOutcome:
    call, response = input.call, here.conversation.response
    if response is None:
        raise InternalError("there is no response to run a call of")
    enter_call(_current(input, here, live))
    history = [*here.conversation.messages[:-1], only_call(response, call.tool_call_id, call.args)]
    decision = DeferredToolResults(approvals={call.tool_call_id: ToolApproved()}) if input.approved else None
    if decision is not None and call.metadata:
        decision.metadata[call.tool_call_id] = call.metadata
    try:
        async with opened(here, [seam], history, decision=decision) as run:
            try:
                node = await advance(run, await at_calls(here, run))
            except Collected as collected:
                waits = deferred(call, collected.requests, run, input.usage)
                return moved.outside(here.durable, call, waits) if waits.kind == "deferred" else waits
            except Elsewhere:
                return moved.elsewhere(here.durable, seam, call, activity.info().attempt)
            bounds = Bounds(call.options, len(response.tool_calls), _reader(seam))
            return await outcome_of_run(call, node, run, input.usage, bounds)
    except asyncio.CancelledError:
        raise
    except Exception as error:
        return outcome_of_error(call, error, activity.info().attempt)


def _reader(seam: Seam) -> str:
    """The name under which the model sees `read_result`."""
    return next((name for name, tool in seam.tools.items() if is_reader(tool.tool_def)), "read_result")


def _current(input: ToolInput, here: Place, live: Live) -> CurrentCall:
    info = activity.info()
    return CurrentCall(
        key=input.call.key,
        attempt=info.attempt,
        attempts=1 if input.call.options.effect == "unsafe" else input.call.options.attempts,
        approved_by=input.approved_by,
        idempotency_key=input.idempotency_key,
        agent=input.agent,
        workflow_id=info.workflow_id or "",
        run_id=input.run_id,
        metadata=here.conversation.start.get("metadata", {}),
        _live=live,
        _read=results_of_this_run().read,
    )
