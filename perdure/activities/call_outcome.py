"""What became of a tool call, as data: from the node Pydantic AI stopped at, or from what the tool raised."""

from __future__ import annotations

from typing import Any

from pydantic_ai import AgentRun, DeferredToolRequests
from pydantic_ai.exceptions import UnexpectedModelBehavior, UserError
from pydantic_ai.messages import ModelRequest, ModelRequestPart, ToolReturnPart
from temporalio.exceptions import ApplicationError

from perdure.activities.carry import dump_value, run_usage, usage_between
from perdure.activities.drive import asked_again
from perdure.activities.faults import fault_of, log_error, text_of, writable
from perdure.activities.large_result import Bounds, TooLarge, carried
from perdure.activities.reported import Reported
from perdure.contracts import (
    MAX_DETAILS,
    MAY_HAVE_RUN,
    CallOutcome,
    Json,
    OutcomeKind,
    PlannedCall,
    Usage,
    payload_size,
    told,
)
from perdure.errors import AnswerLost, InternalError, NotCarried, RootMissing, ServerUnreachable, ToolContractViolation

KINDS: dict[str, OutcomeKind] = {
    "success": "returned",
    "retried": "retried",
    "failed": "failed",
    "denied": "denied",
    "interrupted": "cancelled",
}


async def outcome_of_run(
    call: PlannedCall, node: Any, run: AgentRun[Any, Any], before: Usage, bounds: Bounds
) -> CallOutcome:
    """The outcome where the tool returned, asked for a retry, or failed in words."""
    usage = usage_between(run_usage(before), run.usage)
    parts = asked_again(node)
    if parts is None:
        raise InternalError(f"expected the answer to a call, got {type(node).__name__}")
    answer = next(part for part in parts if isinstance(part, ToolReturnPart) and part.tool_call_id == call.tool_call_id)
    if answer.retry is not None and answer.retry.cause == "unknown_tool":
        return told(call, "failed", f"The tool {call.tool!r} is gone: it is no longer one of the agent's tools.")
    enqueued = _enqueued(run)
    if enqueued is None:
        text = "The tool ran, but enqueued messages that can't be carried: only requests with priority 'asap' are."
        return told(call, "failed", text)
    try:
        dumped = await carried(answer, [*parts, *enqueued], bounds)
    except NotCarried as error:
        return told(call, "failed", f"The tool ran, but its result can't be written as JSON: {error}")
    except TooLarge as error:
        return told(call, "failed", str(error))
    charged = answer.retry is not None and answer.retry.attempt is not None
    return _outcome(call, KINDS[answer.outcome], parts=dumped, charged=charged, usage=usage)


def _enqueued(run: AgentRun[Any, Any]) -> list[ModelRequestPart] | None:
    """What the tool enqueued for the next request (`ctx.enqueue`); `None` where it isn't for that request."""
    parts: list[ModelRequestPart] = []
    for pending in run.pending_messages:
        for message in pending.messages:
            if pending.priority != "asap" or not isinstance(message, ModelRequest):
                return None
            parts += message.parts
    return parts


def outcome_of_error(call: PlannedCall, error: Exception, attempt: int) -> CallOutcome:
    """The outcome of a call whose tool raised. Raises where Temporal should repeat it.

    The text of an exception may hold a secret, so it goes to the worker's log and not to the model.
    """
    if isinstance(error, RootMissing):
        log_error(f"tool {call.tool!r}", error)
    if isinstance(error, UnexpectedModelBehavior | UserError | InternalError | ToolContractViolation | RootMissing):
        return told(call, "failed", "The call ended the run.", fault_of(error))
    if isinstance(error, ApplicationError) and error.non_retryable:
        return told(call, "failed", "The call ended the run.", fault_of(error))
    log_error(f"tool {call.tool!r}", error)
    if isinstance(error, AnswerLost) and call.options.effect == "unsafe":
        return told(call, "unknown", f"{error} {MAY_HAVE_RUN}")
    name = writable(error.type) if isinstance(error, ApplicationError) and error.type else type(error).__name__
    if call.options.effect != "unsafe" and attempt < call.options.attempts:
        delay = error.next_retry_delay if isinstance(error, ApplicationError) else None
        ours = isinstance(error, AnswerLost | ServerUnreachable)
        said = text_of(error) if ours else f"tool {call.tool!r} raised {name}"
        raise Reported(said, type=name, next_retry_delay=delay) from None
    if isinstance(error, ServerUnreachable):
        return told(call, "failed", f"{error} The call was not run." if attempt == 1 else str(error))
    return told(call, "failed", str(error) if isinstance(error, AnswerLost) else f"The tool failed with {name}.")


def deferred(call: PlannedCall, requests: DeferredToolRequests, run: AgentRun[Any, Any], before: Usage) -> CallOutcome:
    """The outcome where the tool deferred itself, or may not run undecided."""
    kind: OutcomeKind = "needs_approval" if requests.approvals else "deferred"
    try:
        metadata = dict(dump_value(requests.metadata.get(call.tool_call_id, {})))
    except NotCarried as error:
        return told(call, "failed", f"The metadata of the deferred call can't be written as JSON: {error}")
    if (size := payload_size(metadata)) > MAX_DETAILS:
        return told(call, "failed", f"The metadata of the deferred call has {size} bytes; it may have {MAX_DETAILS}.")
    outcome = _outcome(call, kind, usage=usage_between(run_usage(before), run.usage), metadata=metadata)
    if kind == "needs_approval":
        return outcome
    action = "question" if requests.kind(call.tool_call_id) == "question" else "external"
    return outcome.model_copy(update={"action": action})


def _outcome(
    call: PlannedCall,
    kind: OutcomeKind,
    *,
    parts: list[Json] | None = None,
    charged: bool = False,
    usage: Usage | None = None,
    metadata: Json | None = None,
) -> CallOutcome:
    return CallOutcome(
        key=call.key,
        tool_call_id=call.tool_call_id,
        tool=call.tool,
        kind=kind,
        parts=parts or [],
        charged=charged,
        usage=usage or Usage(),
        metadata=metadata or {},
    )
