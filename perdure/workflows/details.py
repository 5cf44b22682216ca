"""What the Temporal Web UI shows of a run: Markdown in its current details, and search attributes."""

from __future__ import annotations

import json
import re
from typing import Literal

from temporalio import workflow
from temporalio.common import SearchAttributeKey

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import StatusView, cut
    from perdure.workflows.decisions import Waiting
    from perdure.workflows.state import RunState

AGENT_NAME = SearchAttributeKey.for_keyword("AgentName")
AGENT_STATUS = SearchAttributeKey.for_keyword("AgentStatus")
MAX_CALLS = 20
MAX_ARGS = 500


def status(state: RunState) -> StatusView:
    """The answer of the query `status`."""
    plan = state.plan
    calls = list(state.open_calls.values())
    return StatusView(
        state=state_of(state),
        agent=state.agent,
        version=plan.version if plan else "",
        model=plan.model if plan else "",
        turn=state.turn,
        step=state.step,
        usage=state.usage,
        open_calls=[{"call": call.key, "tool": call.tool, "args": call.args} for call in calls],
        pending=[waiting.view() for waiting in state.waiting.values()],
        rejected=state.rejected,
        rejected_count=state.rejected_count,
    )


def state_of(state: RunState) -> Literal["running", "waiting", "done"]:
    """`waiting`: something waits for people, and nothing runs."""
    if state.done:
        return "done"
    return "waiting" if state.waiting and not state.open_calls else "running"


def waits(state: RunState) -> None:
    """Show that something waits, also in the list of runs."""
    mark_status(state, "waiting")
    show(state)


def show(state: RunState) -> None:
    """Set the current details. Costs no history."""
    workflow.set_current_details(markdown(state))


def mark_status(state: RunState, value: str) -> None:
    """Upsert the search attributes that are registered, in one command."""
    allowed = state.plan.search_attributes if state.plan else []
    if value == state.shown_status:
        return
    state.shown_status = value
    wanted = {AGENT_NAME: state.agent, AGENT_STATUS: value}
    updates = [key.value_set(text) for key, text in wanted.items() if key.name in allowed]
    if updates:
        workflow.upsert_search_attributes(updates)  # pyright: ignore[reportUnknownMemberType]


def markdown(state: RunState) -> str:
    """State, budget and open calls of a run. What a model or user wrote is escaped: the page would load its images."""
    view = status(state)
    usage = view.usage
    cost = f", {usage.cost} USD" if usage.cost is not None else ""
    lines = [
        f"**{escape(view.agent)}** {escape(view.version)} · {escape(view.model)} · {view.state}",
        "",
        f"Turn {view.turn}, step {view.step}. {usage.requests} requests, {usage.tool_calls} tool calls, "
        f"{usage.input_tokens} + {usage.output_tokens} tokens{cost}.",
    ]
    calls = list(state.open_calls.values())
    if calls:
        lines += ["", "| call | tool | arguments |", "|---|---|---|"]
    lines += [
        f"| {call.key} | {escape(call.tool)} | {escape(cut(str(call.args), MAX_ARGS))} |" for call in calls[:MAX_CALLS]
    ]
    if len(calls) > MAX_CALLS:
        lines += ["", f"… and {len(calls) - MAX_CALLS} more calls"]
    for waiting in list(state.waiting.values())[:MAX_CALLS]:
        lines += _waiting_lines(waiting)
    lines += [f"\n{escape(warning)}" for warning in (state.plan.warnings if state.plan else [])]
    if view.rejected_count:
        lines += ["", f"{view.rejected_count} signals could not be used: see the query `status`."]
    return "\n".join(lines)


def _waiting_lines(waiting: Waiting) -> list[str]:
    """What waits, and the JSON to send that decides it, indented: the Web UI's editor needs it so."""
    call = waiting.call
    until = f", until {waiting.expires_at.isoformat()}" if waiting.expires_at else ""
    verbs = "approve` or `deny" if waiting.kind == "approval" else "complete"
    body = {"call": call.key, "by": "your name"} | ({} if waiting.kind == "approval" else {"result": None})
    return [
        "",
        f"**Waits for {waiting.kind}**: {escape(call.tool)} {escape(cut(str(call.args), MAX_ARGS))}{until}",
        "",
        f"Send the update or signal `{verbs}` with",
        "",
        *(f"    {line}" for line in json.dumps(body, indent=2).splitlines()),
    ]


def escape(text: str) -> str:
    """`text` with everything escaped that Markdown or HTML gives a meaning to, on one line."""
    return re.sub(r"([\\`*_{}\[\]()<>#+!|~&-])", r"\\\1", " ".join(text.split()))
