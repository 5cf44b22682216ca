"""From what Pydantic AI collected to the plan that the workflow interprets."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from typing import Any

from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import ModelResponse, ToolCallPart

from perdure.activities.carry import canonical_args
from perdure.activities.faults import log_error
from perdure.activities.seam import Seam
from perdure.agent import Approval, DurableAgent, seconds
from perdure.contracts import Action, ApprovalTerms, PlannedCall, canonical


async def planned_calls(
    durable: DurableAgent, seam: Seam, response: ModelResponse, requests: DeferredToolRequests, step: int
) -> list[PlannedCall]:
    """A plan for each collected call, in the order of the response. Raises `ArgumentsNotCarried`."""
    external = {call.tool_call_id for call in requests.calls}
    collected = external | {call.tool_call_id for call in requests.approvals}
    planned: list[PlannedCall] = []
    for index, call in enumerate(response.tool_calls, start=1):
        if call.tool_call_id in collected:
            metadata = requests.metadata.get(call.tool_call_id, {})
            planned_call = _planned(durable, seam, call, f"{step}.{index}", metadata)
            if call.tool_call_id in external:
                planned.append(_waits_outside(durable, planned_call, _external(requests, call)))
            else:
                planned.append(await _gated(durable, seam, call, planned_call))
    return planned


def _external(requests: DeferredToolRequests, call: ToolCallPart) -> Action:
    return "question" if requests.kind(call.tool_call_id) == "question" else "external"


def _waits_outside(durable: DurableAgent, call: PlannedCall, action: Action) -> PlannedCall:
    wait = seconds(durable.policy(call.tool).wait)
    return call.model_copy(update={"action": action, "wait": wait})


async def _gated(durable: DurableAgent, seam: Seam, call: ToolCallPart, planned: PlannedCall) -> PlannedCall:
    """The call with what it waits for: its policy's approval, or that its tool or its validator asks for one."""
    approval = durable.policy(call.tool_name).approval
    asked = call.tool_call_id in seam.asked or call.tool_call_id not in seam.validated
    if seam.tools[call.tool_name].tool_def.kind == "unapproved" or asked:
        rule = "asked by the validator" if asked else "requires_approval"
        terms = approval.terms(durable.rule(call.tool_name)) if approval else ApprovalTerms(rule=rule)
    elif approval is not None and await _applies(approval, seam, call):
        terms = approval.terms(durable.rule(call.tool_name))
    else:
        return planned
    return planned.model_copy(update={"action": "approve", "approval": terms})


async def _applies(approval: Approval, seam: Seam, call: ToolCallPart) -> bool:
    """What the predicate says of the validated arguments. One that raises gates the call."""
    if approval.when is None:
        return True
    validated, ctx = seam.validated[call.tool_call_id]
    try:
        answer = approval.when(ctx, dict(validated))
        return bool(await answer if inspect.isawaitable(answer) else answer)
    except Exception as error:
        log_error(f"the predicate of tool {call.tool_name!r} gates the call", error)
        return True


def _planned(
    durable: DurableAgent,
    seam: Seam,
    call: ToolCallPart,
    place: str,
    metadata: Mapping[str, Any],
) -> PlannedCall:
    tool = seam.tools[call.tool_name]
    args = _args(seam, call)
    policy = durable.policy(call.tool_name)
    digest = hashlib.sha256(canonical([call.tool_name, args])).hexdigest()[:4]
    return PlannedCall(
        key=f"{place}-{digest}",
        tool_call_id=call.tool_call_id,
        tool=call.tool_name,
        args=args,
        options=policy.options(tool_timeout=tool.tool_def.timeout, sequential=tool.tool_def.sequential),
        metadata=dict(metadata),
    )


def _args(seam: Seam, call: ToolCallPart) -> Any:
    tool = seam.tools[call.tool_name]
    if call.tool_call_id not in seam.validated:
        return call.args_as_dict()
    validated, ctx = seam.validated[call.tool_call_id]
    return canonical_args(tool, validated, ctx.validation_context)
