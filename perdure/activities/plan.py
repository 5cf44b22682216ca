"""From what Pydantic AI collected to the plan that the workflow interprets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import ModelResponse, ToolCallPart

from perdure.activities.carry import canonical_args
from perdure.activities.seam import Seam
from perdure.agent import DurableAgent
from perdure.contracts import Action, PlannedCall, canonical


def planned_calls(
    durable: DurableAgent, seam: Seam, response: ModelResponse, requests: DeferredToolRequests, step: int
) -> list[PlannedCall]:
    """A plan for each collected call, in the order of the response. Raises `ArgumentsNotCarried`."""
    external = {call.tool_call_id for call in requests.calls}
    collected = external | {call.tool_call_id for call in requests.approvals}
    planned: list[PlannedCall] = []
    for index, call in enumerate(response.tool_calls, start=1):
        if call.tool_call_id in collected:
            action = _external(requests, call) if call.tool_call_id in external else _action(seam, call)
            planned.append(_planned(durable, seam, call, f"{step}.{index}", action, requests.metadata))
    return planned


def _external(requests: DeferredToolRequests, call: ToolCallPart) -> Action:
    return "question" if requests.kind(call.tool_call_id) == "question" else "external"


def _action(seam: Seam, call: ToolCallPart) -> Action:
    """A call is run, unless its tool needs approval or its validator asked for one."""
    asked = call.tool_call_id in seam.asked or call.tool_call_id not in seam.validated
    return "approve" if asked or seam.tools[call.tool_name].tool_def.kind == "unapproved" else "run"


def _planned(
    durable: DurableAgent,
    seam: Seam,
    call: ToolCallPart,
    place: str,
    action: Action,
    metadata: Mapping[str, dict[str, Any]],
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
        action=action,
        options=policy.options(tool_timeout=tool.tool_def.timeout, sequential=tool.tool_def.sequential),
        metadata=metadata.get(call.tool_call_id, {}),
    )


def _args(seam: Seam, call: ToolCallPart) -> Any:
    tool = seam.tools[call.tool_name]
    if call.tool_call_id not in seam.validated:
        return call.args_as_dict()
    validated, ctx = seam.validated[call.tool_call_id]
    return canonical_args(tool, validated, ctx.validation_context)
