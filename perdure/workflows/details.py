"""What the Temporal Web UI shows of a run: Markdown in its current details, and search attributes."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Literal

from temporalio import workflow
from temporalio.common import SearchAttributeKey

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Json, StatusView, cut, payload_size, visible
    from perdure.workflows import clock, upward
    from perdure.workflows.markdown import block, escape
    from perdure.workflows.state import RunState
    from perdure.workflows.waits import Waiting

AGENT_NAME = SearchAttributeKey.for_keyword("AgentName")
AGENT_STATUS = SearchAttributeKey.for_keyword("AgentStatus")
AGENT_WAITING = SearchAttributeKey.for_keyword_list("AgentWaiting")
MEMO = "waiting"
"""The memo of a run: the keys of what waits."""
MAX_CALLS = 20
MAX_ARGS = 500
"""Characters of a cell."""
MAX_AWAITED = 1_500
"""Bytes of `AgentWaiting`: over 2,048 the server ends the run. Kinds first, then names as far as there is room."""
GAP = "\N{EM SPACE}| "
"""Between cells: the page draws no borders and leaves no space."""
MAX_SHOWN = 4_000
"""Bytes of the arguments that a person decides on; twenty of them stay under the 200 kB the page can show."""


def status(state: RunState) -> StatusView:
    """The answer of the query `status`."""
    plan = state.plan
    calls = list(state.open_calls.values())
    return StatusView(
        state=state_of(state),
        agent=state.agent,
        version=plan.version if plan else "",
        model=model_id(state),
        turn=state.turn,
        step=state.step,
        usage=state.usage,
        limits=state.limits,
        open_calls=[{"call": call.key, "tool": call.tool, "args": call.args} for call in calls],
        pending=pending(state),
        session=state.is_session,
        queue=len(state.queue),
        rejected=state.rejected,
        rejected_count=state.rejected_count,
        warnings=plan.warnings if plan else [],
        unsent=state.unsent,
    )


def model_id(state: RunState) -> str:
    """The id of the model that the next request goes to, as far as it is known."""
    plan, key = state.plan, state.next_model
    if plan is None:
        return ""
    return plan.model if state.request and key == state.request.model else plan.models.get(key or "", key or "")


def pending(state: RunState) -> list[Json]:
    """The answer of the query `pending`."""
    verifies = state.plan is not None and state.plan.verifies
    own = [waiting.view() | {"verifies": verifies} for waiting in state.in_order]
    return [*own, *(row for below in state.below.values() for row in below.pending)]


def state_of(state: RunState) -> Literal["running", "waiting", "idle", "closing", "done"]:
    """`waiting`: something waits for people, and nothing runs. `idle`: a session waits for a message."""
    if state.done:
        return "done"
    if state.closing:
        return "closing"
    if state.is_session and not state.in_turn and not state.queue and state.plan:
        return "idle"
    return "waiting" if state.only_waits else "running"


def waits(state: RunState) -> None:
    """Show that something waits, here or in a run below, or waits no more, or waits for something else.

    Commands something in any case, if only a memo: Temporal may replay a workflow task without commands together with
    the next one, and then hands over what people sent before what they sent it for.
    """
    clock.tick(state)
    now = workflow.now()
    if not _mark(state) and state.commanded_at != now:
        workflow.upsert_memo({MEMO: [waiting.key for waiting in state.in_order][:MAX_CALLS]})
    state.commanded_at = now
    show(state)
    tell(state)


def tell(state: RunState) -> None:
    """Tell the run above, if there is one, what waits here and in runs below."""
    if upward.above(state):
        upward.changed(state, pending(state))


def begins(state: RunState) -> None:
    """Show that the run has begun, or that it ends."""
    _mark(state)
    show(state)


def show(state: RunState) -> None:
    """Set the current details. Costs no history."""
    state.revision += 1
    workflow.set_current_details(markdown(state, workflow.now()))


def _mark(state: RunState) -> bool:
    """Upsert the search attributes that are registered, in one command, where one of them changes; whether it did."""
    allowed = state.plan.search_attributes if state.plan else []
    status = "done" if state.done else "waiting" if state.something_waits else "idle" if _is_idle(state) else "running"
    who = awaited(state) if AGENT_WAITING.name in allowed else []
    if (status, who) == (state.shown_status, state.shown_waiting):
        return False
    state.shown_status, state.shown_waiting = status, who
    updates = [AGENT_NAME.value_set(state.agent), AGENT_STATUS.value_set(status)]
    waiting = AGENT_WAITING.value_set(who) if who else AGENT_WAITING.value_unset()
    chosen = [update for update in [*updates, waiting] if update.key.name in allowed]
    if chosen:
        workflow.upsert_search_attributes(chosen)  # pyright: ignore[reportUnknownMemberType]
    return bool(chosen)


def _is_idle(state: RunState) -> bool:
    return state.is_session and not state.in_turn and not state.queue


def awaited(state: RunState) -> list[str]:
    """What the search attribute `AgentWaiting` holds: what is waited for, and from whom."""
    rows = pending(state)
    kinds = sorted({str(row["kind"]): "" for row in rows})
    names = sorted({str(name): "" for row in rows for name in row.get("approvers", [])})
    found = list(kinds)
    for name in names:
        if payload_size([*found, name]) <= MAX_AWAITED:
            found.append(name)
    return found


def markdown(state: RunState, at: datetime) -> str:
    """State, budget and open calls of a run. What a model or user wrote is escaped: the page would load its images.

    The page doesn't refresh by itself, so the text says of when it is.
    """
    plan, usage = state.plan, state.usage
    cost = f", {usage.cost} USD" if usage.cost is not None else ""
    model = escape(model_id(state))
    about = f"**{escape(state.agent)}** {escape(plan.version)} · {model}" if plan else escape(state.agent)
    lines = [
        f"{about} · {state_of(state)}",
        "",
        f"Turn {state.turn}, step {state.step}. {usage.requests} requests, {usage.tool_calls} tool calls, "
        f"{usage.input_tokens} + {usage.output_tokens} tokens{cost}.",
        "",
        f"As of {at:%Y-%m-%d %H:%M:%S} UTC, revision {state.revision}; R shows it anew.",
    ]
    calls = list(state.open_calls.values())
    if calls:
        lines += ["", "| call | tool | arguments |", "|---|---|---|"]
    for call in calls[:MAX_CALLS]:
        cells = (call.key, call.tool, cut(json.dumps(call.args, ensure_ascii=False), MAX_ARGS))
        lines.append(f"| {GAP.join(map(escape, cells))} |")
    if len(calls) > MAX_CALLS:
        lines += ["", f"… and {len(calls) - MAX_CALLS} more calls"]
    lines += _waiting_lines(state) + _below_lines(state)
    lines += [f"\n{escape(warning)}" for warning in (plan.warnings if plan else [])]
    if state.rejected_count:
        lines += ["", f"{state.rejected_count} signals could not be used: see the query `status`."]
    if state.unsent:
        lines += ["", f"{len(state.unsent)} notifications could not be sent: see the query `status`."]
    return "\n".join(lines)


def _waiting_lines(state: RunState) -> list[str]:
    """A table of what waits; under it the arguments of each as they are, and the JSON that decides it.

    Both are indented blocks: whatever is in them the page shows as it is, and its editor takes JSON only in lines.
    """
    every = state.in_order
    if not every:
        return []
    lines = ["", "| call | waits for | tool | who | until |", "|---|---|---|---|---|"]
    lines += [_row(waiting) for waiting in every[:MAX_CALLS]]
    if len(every) > MAX_CALLS:
        lines += ["", f"… and {len(every) - MAX_CALLS} more: see the query `pending`"]
    for waiting in every[:MAX_CALLS]:
        lines += _body_lines(waiting, state.plan is not None and state.plan.verifies)
    return lines


def _below_lines(state: RunState) -> list[str]:
    """What waits in runs below, and where it is decided."""
    rows = [row for below in state.below.values() for row in below.pending][:MAX_CALLS]
    where = "\n{} waits in run {}, call {}"
    return [where.format(*(escape(str(row.get(name, ""))) for name in ("tool", "workflow_id", "call"))) for row in rows]


def _row(waiting: Waiting) -> str:
    votes = f"{len(waiting.votes)} of {waiting.terms.quorum} votes" if waiting.terms.quorum > 1 else ""
    who = ", ".join(filter(None, (*waiting.terms.approvers, votes))) or "anyone"
    until = f"{waiting.expires_at:%Y-%m-%d %H:%M} UTC" if waiting.expires_at else "for ever"
    cells = (waiting.key, waiting.kind, waiting.call.tool, cut(who, MAX_ARGS), until)
    return f"| {GAP.join(map(escape, cells))} |"


def _body_lines(waiting: Waiting, verifies: bool) -> list[str]:
    verbs = "approve` or `deny" if waiting.kind == "approval" else "deny" if waiting.kind == "limit" else "complete"
    who: Json = {"token": "a token for this decision"} if verifies else {"by": "your name"}
    body = {"call": waiting.key} | who
    body |= {} if waiting.kind in ("approval", "limit") else {"result": "the result"}
    whole = json.dumps(waiting.call.args, indent=2, ensure_ascii=False)
    seen = visible(whole[: MAX_SHOWN + 1], keep="\n").encode()  # no more is needed to know whether it fits
    left_out = "" if len(seen) <= MAX_SHOWN else " **There is more: it is cut here, see the query `pending`.**"
    return [
        "",
        f"**{waiting.key}**: {escape(waiting.call.tool) or 'the run waits'} with{left_out}",
        *block(seen[:MAX_SHOWN].decode(errors="ignore")),
        *_raise_lines(waiting, who),
        f"Send an update or a signal `{verbs}` with",
        *block(json.dumps(body, indent=2)),
    ]


def _raise_lines(waiting: Waiting, who: Json) -> list[str]:
    """For a limit: the JSON that raises it."""
    if waiting.kind != "limit":
        return []
    args = waiting.call.args
    enough = {args["limit"]: args.get("needed", args["used"])}
    return [
        "Send an update or a signal `set_limits` with",
        *block(json.dumps({"limits": enough} | who, indent=2)),
        "or",
    ]
