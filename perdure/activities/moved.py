"""A call whose tool is served otherwise than when it was planned: another deploy came while it waited."""

from __future__ import annotations

from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition

from perdure.activities.plan import planned
from perdure.activities.seam import Seam
from perdure.agent import DurableAgent
from perdure.contracts import CallOutcome, Moved, PlannedCall, Target, args_digest, told
from perdure.errors import NotCarried
from perdure.policy import seconds
from perdure.schemas import problems

SCHEDULED = ("activity", "workflow", "nexus")
"""Kinds of targets that a call can be moved to. How a step goes on with agents depends on its plan."""


def elsewhere(durable: DurableAgent, seam: Seam, call: PlannedCall, attempt: int) -> CallOutcome:
    """The outcome of a call that somebody else runs now: nothing has run, and the workflow makes it or waits, once.

    It doesn't where an attempt of the tool as it was before may have had an effect, or where the arguments wouldn't be
    those that were seen.
    """
    text = f"The tool {call.tool!r} is served in another way since this call was made: it was not run."
    failed = told(call, "failed", f"{text} Call it again.")
    if attempt > 1 and call.options.effect != "safe":
        return told(call, "failed", f"{text} An earlier attempt may have run: check before you repeat it.")
    tool = seam.tools[call.tool].tool_def
    try:
        plan = planned(durable, seam, ToolCallPart(call.tool, call.args, call.tool_call_id), "", call.metadata)
    except NotCarried:
        return failed
    if args_digest(plan.args) != args_digest(call.args):
        return failed
    if tool.kind == "external":
        return failed if problems(tool.parameters_json_schema, plan.args) else _waits(call, plan, tool)
    if plan.target is None or plan.target.kind not in SCHEDULED:
        return failed
    return failed.model_copy(update={"moved": _moved(plan, target=plan.target)})


def _waits(call: PlannedCall, plan: PlannedCall, tool: ToolDefinition) -> CallOutcome:
    metadata = {"result_schema": tool.return_schema} if tool.return_schema else {}
    waits = told(call, "deferred", "")
    return waits.model_copy(update={"action": "external", "metadata": call.metadata | metadata, "moved": _moved(plan)})


def _moved(plan: PlannedCall, target: Target | None = None) -> Moved:
    return Moved(target=target, options=plan.options, wait=plan.wait, dispatch=plan.dispatch, checked=plan.checked)


def outside(durable: DurableAgent, call: PlannedCall, waits: CallOutcome) -> CallOutcome:
    """The outcome of a call that has deferred itself, with today's policy for the waiting where that is another one."""
    policy = durable.policy(call.tool)
    options = call.options.model_copy(update={"on_timeout": policy.options().on_timeout})
    update = {"options": options, "wait": seconds(policy.wait), "dispatch": policy.dispatch is not None}
    today = call.model_copy(update=update | {"checked": policy.result is not None})
    return waits if today == call else waits.model_copy(update={"moved": _moved(today)})
