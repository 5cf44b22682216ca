"""A call that hands the conversation to another agent of the app, for the rest of the run.

The call itself only asks a worker whether the other agent takes it. Calls beside it run as those of the agent that made
them; when the step is answered, the run goes on as one of the other agent, under the lower limits of both.
"""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import (
        AgentTerms,
        CallOutcome,
        Handoff,
        Json,
        PlannedCall,
        RetryState,
        RunRequest,
        Step,
        Target,
        told,
    )
    from perdure.errors import ModelFailed
    from perdure.workflows import clock, details, requests, rooms
    from perdure.workflows.state import RunState
    from perdure.workflows.subagents import failed_text, params_of, too_large

IGNORED = "Ignored: of several handoffs in one response only the first counts."
HANDOFF = "handoff"
"""The key in the metadata of an outcome."""


def is_ignored(step: Step, call: PlannedCall) -> bool:
    """Whether another handoff of the response came first, whatever becomes of that."""
    first = next((one for one in step.calls if _is_handoff(one)), None)
    return _is_handoff(call) and first is not None and first.key != call.key


def _is_handoff(call: PlannedCall) -> bool:
    return call.target is not None and call.target.kind == "handoff"


async def run(state: RunState, call: PlannedCall, target: Target) -> CallOutcome:
    """Ask whether the other agent takes the conversation. Refused, the conversation stays."""
    terms = target.agent or AgentTerms()
    params = params_of(state, terms, dict(call.args))
    changes: Json = {"agent": target.name, "prompt": "", "params": params or None, "model": terms.model}
    asked = state.request or RunRequest(agent="", prompt="")
    asked = asked.model_copy(update=changes | {"session": None, "within": None})
    if problem := too_large(state, call, asked.model_dump(mode="json")):
        return told(call, "failed", f"The handoff was not made: {problem}.")
    try:
        plan = await requests.plan_of(state, asked)
    except ApplicationError as error:
        return told(call, "failed", failed_text(target.name, error))
    except ModelFailed:
        return told(call, "failed", f"The agent {target.name!r} could not be asked.")
    given = Handoff(plan=plan, params=params, model=terms.model)
    outcome = told(call, "returned", f"The conversation goes on with the agent {target.name!r}.")
    return outcome.model_copy(update={"metadata": {HANDOFF: given.model_dump(mode="json")}})


def apply(state: RunState, step: Step, outcomes: list[CallOutcome]) -> None:
    """Go on as another agent, where a call of the step that is answered now has handed over."""
    calls = [call for call in step.calls if _is_handoff(call)]
    found = [one for one in outcomes if HANDOFF in one.metadata and any(one.key == call.key for call in calls)]
    if not found or state.plan is None or state.request is None:
        return
    clock.tick(state)
    given, before = Handoff.model_validate(found[0].metadata[HANDOFF]), state.agent
    plan = given.plan
    state.plan = plan.model_copy(update={"limits": rooms.lower(state.plan.limits, plan.limits)})
    state.limits, state.handed_over = rooms.lower(state.limits, plan.limits), True
    state.request = state.request.model_copy(
        update={"agent": plan.agent, "params": given.params or None, "model": given.model}
    )
    state.model = state.next_model = given.model
    state.retries, state.compact_floor = RetryState(), 0
    now = workflow.now()
    entry: Json = {"kind": "handoff", "agent": plan.agent, "from": before, "at": now.isoformat()}
    state.transcript.append(entry | ({"params": given.params} if given.params else {}))
    state.note("handoff", calls[0], now, agent=plan.agent, before=before)
    state.shown_status = ""
    details.begins(state)
