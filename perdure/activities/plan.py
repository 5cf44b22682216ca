"""From what Pydantic AI collected to the plan that the workflow interprets."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal

from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.tools import ToolDefinition

from perdure.activities.carry import canonical_args
from perdure.activities.containment import contained
from perdure.activities.faults import log_error
from perdure.activities.seam import Seam
from perdure.agent import DurableAgent
from perdure.contracts import ApprovalTerms, CallOptions, PlannedCall, args_digest
from perdure.policy import READER, UNTIMED_START_TO_CLOSE, Approval, ToolPolicy, seconds
from perdure.toolsets.bound import bound_to
from perdure.toolsets.claims import with_claims
from perdure.toolsets.read_result import is_reader
from perdure.toolsets.target import result_of, target_of

KEY_DIGITS = 8
LOOKUPS = ("tool-search", "capability-load")
"""Kinds of Pydantic AI's own tools: `search_tools`, whatever its strategy, and `load_capability`."""


async def planned_calls(
    durable: DurableAgent, seam: Seam, response: ModelResponse, requests: DeferredToolRequests, step: int
) -> list[PlannedCall]:
    """A plan for each collected call, in the order of the response. Raises `ArgumentsNotCarried`."""
    external = {call.tool_call_id for call in requests.calls}
    collected = external | {call.tool_call_id for call in requests.approvals}
    plans: list[PlannedCall] = []
    for index, call in enumerate(response.tool_calls, start=1):
        if call.tool_call_id in collected:
            metadata = requests.metadata.get(call.tool_call_id, {})
            plan = planned(durable, seam, call, f"{step}.{index}", metadata)
            if call.tool_call_id in external:
                plan = _waits_outside(seam, plan, _external(requests, call))
            plans.append(await _gated(durable, seam, call, plan))
    return plans


def _external(requests: DeferredToolRequests, call: ToolCallPart) -> Literal["external", "question"]:
    return "question" if requests.kind(call.tool_call_id) == "question" else "external"


def _waits_outside(seam: Seam, call: PlannedCall, action: Literal["external", "question"]) -> PlannedCall:
    """The call of an external tool, or of one whose validator deferred it, with the schema of its result."""
    definition = seam.tools[call.tool].tool_def
    metadata = dict(call.metadata)
    own = definition.return_schema if definition.kind == "external" else None
    asked = metadata.get("result_schema")
    schema: Any = metadata.pop("result_schema") if isinstance(asked, dict) else own
    update = {"action": action, "after": action, "metadata": metadata, "checked": call.checked or bool(schema)}
    return call.model_copy(update=update | ({"result_schema": schema} if schema else {}))


async def _gated(durable: DurableAgent, seam: Seam, call: ToolCallPart, planned: PlannedCall) -> PlannedCall:
    """The call with what it waits for: its policy's approval, or that its tool or its validator asks for one.

    The policy's terms go with it also where it needn't wait: its tool may still ask.
    """
    approval = _policy(durable, seam, call.tool_name).approval
    asked = call.tool_call_id in seam.asked or call.tool_call_id not in seam.validated
    if seam.tools[call.tool_name].tool_def.kind == "unapproved" or asked:
        rule = "asked by the validator" if asked else "requires_approval"
        terms = _terms(durable, planned.tool, approval) or ApprovalTerms(rule=rule)
    elif approval is not None and await _applies(approval, seam, call):
        terms = _terms(durable, planned.tool, approval)
    else:
        return planned.model_copy(update={"approval": _terms(durable, planned.tool, approval)})
    return planned.model_copy(update={"action": "approve", "approval": terms})


def _policy(durable: DurableAgent, seam: Seam, name: str) -> ToolPolicy:
    return with_claims(durable.policy(name), durable.rule(name), seam.tools[name].tool_def)


def _terms(durable: DurableAgent, tool: str, approval: Approval | None) -> ApprovalTerms | None:
    own = durable.policy(tool).approval is not None
    return approval.terms(durable.rule(tool) if own else "destructiveHint") if approval else None


async def _applies(approval: Approval, seam: Seam, call: ToolCallPart) -> bool:
    """What the predicate says of the validated arguments. One that raises gates the call."""
    if approval.when is None:
        return True
    validated, ctx = seam.validated[call.tool_call_id]
    try:
        with contained():
            answer = approval.when(ctx, dict(validated))
            return bool(await answer if inspect.isawaitable(answer) else answer)
    except Exception as error:
        log_error(f"the predicate of tool {call.tool_name!r} gates the call", error)
        return True


def planned(
    durable: DurableAgent,
    seam: Seam,
    call: ToolCallPart,
    place: str,
    metadata: Mapping[str, Any],
) -> PlannedCall:
    """A plan for a call that has been validated, whatever it waits for. Raises `ArgumentsNotCarried`."""
    tool = seam.tools[call.tool_name]
    args = _args(seam, call)
    policy = _policy(durable, seam, call.tool_name)
    options = policy.options(tool_timeout=tool.tool_def.timeout, sequential=_alone(tool.tool_def))
    target = target_of(tool.tool_def)
    if target is not None:
        options = of_target(options)
    return PlannedCall(
        key=key_of(place, call.tool_name, args),
        tool_call_id=call.tool_call_id,
        tool=call.tool_name,
        args=args,
        options=_of_our_own(durable, tool.tool_def, options),
        wait=seconds(policy.wait),
        dispatch=policy.dispatch is not None,
        checked=policy.result is not None or result_of(tool.tool_def) is not None,
        metadata=dict(metadata),
        target=target,
        bound_to=bound_to(tool.tool_def),
    )


def _alone(tool: ToolDefinition) -> bool:
    """Calls in one session are one conversation."""
    return tool.sequential or bool(bound_to(tool))


def of_target(options: CallOptions) -> CallOptions:
    """The options of a call that the workflow makes itself: nobody keeps the time but Temporal."""
    return options.model_copy(update={"start_to_close": options.timeout or UNTIMED_START_TO_CLOSE})


def _of_our_own(durable: DurableAgent, tool: ToolDefinition, options: CallOptions) -> CallOptions:
    """The options of tools that are no user's. They only look: `safe` unless a policy is for them."""
    if not is_reader(tool) and tool.tool_kind not in LOOKUPS:
        return options
    own = options if durable.rule(tool.name) else READER.options(sequential=options.sequential)
    if not is_reader(tool):
        return own
    return own.model_copy(update={"max_result_bytes": None, "large_result": ""})  # its pages are bounded


def key_of(place: str, tool: str, args: Any) -> str:
    """The key of a call: where it stands, bound to what is shown of it."""
    return f"{place}-{args_digest([tool, args])[:KEY_DIGITS]}"


def _args(seam: Seam, call: ToolCallPart) -> Any:
    tool = seam.tools[call.tool_name]
    if call.tool_call_id not in seam.validated:
        return call.args_as_dict()
    validated, ctx = seam.validated[call.tool_call_id]
    return canonical_args(tool, validated, ctx.validation_context)
