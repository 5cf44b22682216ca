"""What must hold of a run that has ended: its messages, what truly ran, its history."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory

from tests.decisions.known import Known, Row
from tests.decisions.rules import Case
from tests.decisions.scenario import BROKEN, place_of
from tests.decisions.shop import Log

Answer = tuple[str, str]
"""Pydantic AI's outcome of a tool return, and its text."""
INTERRUPTED = ("interrupted", "")
RETRIED = ("retried", "")
"""Of these two the text doesn't matter."""
SAID = ("part_kind", "tool_name", "args", "content", "outcome")
LATE = "No decision came in time, so the call was not made. This is not a denial: nobody answered."
LATE_RESULT = "No result came in time. The call may still be made outside: check before you repeat it."


def may_be_left(known: Known, key: str) -> bool:
    """Whether a call that has to run may not have begun all the same: the run was ending."""
    return known.cancelled or (known.ends and known.case(key).call.waits)


def expected(known: Known, log: Log, key: str) -> set[Answer]:
    """How a call may be answered. In more than one way only where the run was cancelled meanwhile."""
    case = known.case(key)
    if case.call.kind in BROKEN:
        return {RETRIED}
    if known.runs(key):
        ran = ("success", f"{case.call.tool} {case.args['n']}")
        begun = case.key in {one for one, *_ in log.ran}
        left = INTERRUPTED if known.cancelled or (may_be_left(known, key) and not begun) else ran
        return {ran, left}
    match case.outcome:
        case "completed":
            return {("success", case.rows[-1][1])}
        case "denied" | "failed":
            return {(case.outcome, case.rows[-1][1])}
        case "expired":
            return {("denied", LATE_RESULT if case.call.kind == "brief_external" else LATE)}
        case _:
            return {INTERRUPTED}


def check_messages(known: Known, log: Log, messages: Sequence[ModelMessage]) -> None:
    """Each call is answered in call order, as the rules say; ids are never empty and never used twice."""
    responses = [index for index, message in enumerate(messages) if isinstance(message, ModelResponse)]
    ids: list[str] = []
    for step, index in enumerate(responses):
        calls = [part for part in messages[index].parts if isinstance(part, ToolCallPart)]
        answers = [part for part in messages[index + 1].parts if isinstance(part, ToolReturnPart)]
        assert [call.tool_call_id for call in calls] == [answer.tool_call_id for answer in answers]
        ids += [call.tool_call_id for call in calls]
        keys = [key for key, _ in known.scenario.step_calls(step)]
        for key, answer in zip(keys, answers, strict=True):
            said = (answer.outcome, answer.model_response_str(wrap_if_error=False))
            said = (answer.outcome, "") if answer.outcome in ("interrupted", "retried") else said
            assert said in expected(known, log, key), (known.case(key), said)
            assert said[0] != "success" or not known.runs(key) or known.case(key).key in {one for one, *_ in log.ran}
    assert len(ids) == len(set(ids))
    assert all(ids)


def check_ran(known: Known, log: Log) -> None:
    """What ran is what was allowed, once, with the arguments that were shown or accepted instead."""
    ran = Counter((key, tool, json.dumps(args)) for key, tool, args in log.ran)
    began = Counter(log.began)
    assert all(count == 1 for count in (ran | began).values()), (ran, began)
    cases = {key: known.case(key) for key in known.states if known.runs(key)}
    allowed = {key: (case.key, case.call.tool, case.shown) for key, case in cases.items()}
    due = {call for key, call in allowed.items() if not may_be_left(known, key)}
    assert due <= set(ran) <= set(allowed.values()), (ran, allowed)
    for key, _, args in log.ran:
        assert key not in known.shown or known.shown[key]["args"] == args


def check_requests(known: Known, log: Log) -> None:
    """The model was asked as often as the script says: not again after a pause, a restart or a decision."""
    assert log.asked == list(range(len(log.asked)))
    assert known.ends or len(log.asked) == len(known.scenario.steps) + 1


def check_audit(known: Known, log: Log) -> None:
    """A call that was approved has one row of its run, after that; no other has any. Nothing waits any more."""
    for key, states in known.states.items():
        assert not any(case.stage == "waits" for case in states), states
        rows = [row for row in known.audit if place_of(row["call"]) == place_of(key)]
        events = [row["event"] for row in rows]
        case = known.case(key)
        ran = case.outcome == "approved" and (not known.ends or case.key in {one for one, *_ in log.ran})
        assert events.count("ran") == ran or (known.cancelled and case.outcome == "approved"), events
        assert "ran" not in events or events.index("approved") < events.index("ran")
        assert all(row["call"] == case.key for row in rows if row["event"] == "ran")
        check_edits(case, [row for row in rows if row["event"] == "edited"])


def check_edits(case: Case, rows: Sequence[Row]) -> None:
    """Each edit says what was shown before and what is shown since."""
    versions = [case.call.args, *(row["args"] for row in rows)]
    assert [row["original_args"] for row in rows] == versions[:-1]
    assert versions[-1] == case.args


def check_keys(known: Known, entries: Sequence[Row]) -> None:
    """The transcript names each call as it was planned, whatever it was edited to."""
    keys = [outcome["key"] for entry in entries for outcome in entry.get("outcomes", [])]
    assert len(keys) == len(set(keys))
    assert set(keys) <= set(known.states)


def check_history(known: Known, history: WorkflowHistory) -> None:
    """A call has as many activities as it may have, and the one that was decided comes after its decision."""
    at = decisions(history.events)
    begun = activities(history.events)
    for key in known.states:
        case = known.case(key)
        first = 1 if case.call.asks_itself or not case.call.waits else 0
        mine = begun.get(place_of(key), [])
        assert len(mine) <= first + (case.outcome == "approved"), (case, begun)
        if len(mine) > first:
            assert at[case.rows[-1][1]] < mine[-1]


def activities(events: Sequence[HistoryEvent]) -> dict[str, list[int]]:
    """By place of a call: the events that scheduled its activities."""
    found: dict[str, list[int]] = {}
    for event in events:
        attributes = event.activity_task_scheduled_event_attributes
        if attributes.activity_type.name.startswith("tool:"):
            key = json.loads(attributes.input.payloads[0].data)["call"]["key"]
            found.setdefault(place_of(key), []).append(event.event_id)
    return found


def decisions(events: Sequence[HistoryEvent]) -> dict[str, int]:
    """By tag: the event that brought a decision."""
    found: dict[str, int] = {}
    for event in events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
            payloads = event.workflow_execution_signaled_event_attributes.input.payloads
        else:
            payloads = event.workflow_execution_update_accepted_event_attributes.accepted_request.input.args.payloads
        body: Any = json.loads(payloads[0].data) if len(payloads) == 1 else None
        if isinstance(body, dict):
            found[str(cast("Row", body).get("reason"))] = event.event_id
    return found


def outcome(known: Known, log: Log, messages: Sequence[ModelMessage]) -> Row:
    """Everything of a run that must be the same on every worker: no times, no ids that were made for it."""
    parts = [part for message in messages for part in message.parts if not isinstance(part, UserPromptPart)]
    audit = [{name: value for name, value in row.items() if name not in ("at", "began")} for row in known.audit]
    return {
        "messages": [[getattr(part, name, None) for name in SAID] for part in parts],
        "ran": sorted(log.ran, key=str),
        "asked": log.asked,
        "audit": {key: [row for row in audit if place_of(row["call"]) == place_of(key)] for key in known.states},
        "rejected": [(row["signal"], row["reason"]) for row in known.rejected],
    }
