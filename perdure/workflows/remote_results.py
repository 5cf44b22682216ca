"""What somebody else's activity, workflow or operation returned, as the outcome of the call."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import (
        MAX_ANSWERS,
        MAX_PAYLOAD,
        CallOutcome,
        Fault,
        PlannedCall,
        ResultCheck,
        ResultInput,
        Usage,
        cut,
        payload_size,
        told,
        unfit,
    )
    from perdure.workflows.cancelling import cancelled
    from perdure.workflows.effects import stopped
    from perdure.workflows.requests import execute
    from perdure.workflows.state import RunState

VIOLATION = "ToolContractViolation"
UNREADABLE = "The call ran, but its result can't be used"


async def outcome_of_result(state: RunState, call: PlannedCall, raw: RawValue | None) -> CallOutcome:
    """The outcome of a call that returned. One that breaks its contract ends the run with `ToolContractViolation`."""
    try:
        result = read(raw)
        size = payload_size(result)
        problem = unfit(result)
    except (ValueError, RecursionError) as error:
        return told(call, "failed", f"{UNREADABLE}: {cut(str(error), 300)}")
    if problem:
        return told(call, "failed", f"{UNREADABLE}: values that {problem}.")
    if size > (most := _most(state, call)):
        return told(call, "failed", f"The call ran, but its result has {size} bytes; it may have {most}.")
    if call.checked and (refused := await _checked(state, call, result)):
        return refused
    return told(call, "returned", "").model_copy(update={"result": [result], "usage": Usage(tool_calls=1)})


def read(raw: RawValue | None) -> Any:
    """The JSON of a result, whichever of Temporal's SDKs wrote it. Raises `ValueError`, and `RecursionError`."""
    if raw is None:
        return None
    encoding = raw.payload.metadata.get("encoding", b"").decode(errors="replace")
    if encoding == "binary/null":
        return None
    if encoding not in ("json/plain", "json/protobuf"):
        raise ValueError(f"it is written as {encoding[:100]!r}, not as JSON")
    return json.loads(raw.payload.data)


def _most(state: RunState, call: PlannedCall) -> int:
    siblings = len(state.current.step.calls) if state.current else 1
    return min(call.options.max_result_bytes or MAX_PAYLOAD, MAX_ANSWERS // max(1, siblings))


async def _checked(state: RunState, call: PlannedCall, result: Any) -> CallOutcome | None:
    """Why the result isn't taken, as an outcome; `None` = it is what was declared. Waits for a worker of the agent."""
    size = payload_size(result)
    try:  # together in one workflow task, several large ones would be more than Temporal takes
        await workflow.wait_condition(lambda: state.checking == 0 or state.checking + size <= MAX_PAYLOAD)
    except asyncio.CancelledError:
        return stopped(call, begun=True)
    state.checking += size
    try:
        raw = await execute(
            state,
            "check_result",
            ResultInput(agent=state.agent, tool=call.tool, result_schema=call.result_schema, result=[result]),
            start_to_close_timeout=timedelta(seconds=10),
            retry_policy=RetryPolicy(maximum_attempts=5),
            summary=call.key,
        )
        problem = ResultCheck.model_validate(raw).problem
    except FailureError:
        if cancelled():
            return stopped(call, begun=True)
        return told(call, "failed", "The call ran, but its result could not be checked.")
    finally:
        state.checking -= size
    if not problem:
        return None
    fault = Fault(type=VIOLATION, message=cut(f"the result of tool {call.tool!r} isn't what it declares: {problem}"))
    return told(call, "failed", "The call ran, but its result breaks its contract.", fault)
