"""What is known of the calls of a run, by the rules and by what was seen. Fails where the two don't agree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from typing import Any

from tests.decisions.rules import CLOSED, UNSEEN, Case, Refused, Rejected, Reply, Rows, explained, later
from tests.decisions.scenario import BROKEN, Scenario, Sent, place_of

Row = dict[str, Any]
Answers = list[tuple[Sent, Reply]]
REFUSALS = {"InvalidRequest", "NotPending", "AlreadyDecided", "NotAllowed"}
DECISIVE = (
    "asked",
    "voted",
    "edited",
    "approved",
    "denied",
    "completed",
    "failed",
    "expired",
    "escalated",
    "cancelled",
)
"""Rows of the audit that the rules foresee in their order; `ran` follows when the tool has ended."""


@dataclass
class Known:
    """The states that each call may be in: one, but while a race is open."""

    scenario: Scenario
    states: dict[str, frozenset[Case]]
    answers: Answers = field(default_factory=lambda: [])
    shown: dict[str, Row] = field(default_factory=lambda: {})
    """By key, which an edit changes: what `pending` showed under it."""
    audit: list[Row] = field(default_factory=lambda: [])
    rejected: list[Row] = field(default_factory=lambda: [])
    """As they were read last."""
    cancelled: bool = False

    @staticmethod
    def before(scenario: Scenario) -> Known:
        """Before anything has happened."""
        return Known(scenario, {key: frozenset({Case.of(key, call)}) for key, call in scenario.calls()})

    def case(self, key: str) -> Case:
        """The state of a call, by its planned key."""
        return min(self.states[key], key=str)

    @property
    def newest(self) -> dict[str, str]:
        """By planned key: the key that was shown last."""
        return {key: self.case(key).key for key in self.states}

    def planned(self, key: str) -> str:
        """The planned key of a call, by any of its keys."""
        return next(one for one in self.states if place_of(one) == place_of(key))

    @property
    def may_end(self) -> bool:
        """Whether the run may have ended already, unseen."""
        return self.cancelled or any(call.kind == "fails" for _, call in self.scenario.calls())

    @property
    def ends(self) -> bool:
        """Whether the run has to end without an output."""
        return self.cancelled or any(self.case(key).ends_run for key in self.states)

    def begins(self, step: int) -> None:
        """The model may answer: from here on the calls of the step may wait."""
        for key, _ in self.scenario.step_calls(step):
            self.states[key] = frozenset(replace(case, stage="next") for case in self.states[key])

    def weigh(self, waves: Sequence[tuple[Answers, bool]], audit: list[Row], status: Row) -> None:
        """Hold what was sent, wave by wave, against the rules."""
        events = {tag: event for event, tag, _ in map(row_of, audit) if tag}
        news = status["rejected"][len(self.rejected) :]  # of the last 50, which no scenario reaches
        self.rejected = status["rejected"]
        found = Counter((row["signal"], type_of(row["reason"])) for row in news)
        for key, states in self.states.items():
            self.states[key] = frozenset(replace(case, rejected=()) for case in states)
        for answers, together in waves:
            known = [(message, _known(message, reply, events)) for message, reply in answers]
            found.subtract(
                (message.verb, _unnamed(message)) for message, reply in known if unnamed_signal(message, reply)
            )
            self._weigh(known, together)
        assert all(count >= 0 for count in found.values()), f"not rejected: {found}"
        self._reject(+found, audit)

    def learn(self, audit: list[Row]) -> None:
        """Hold the audit against the rules: each call has the rows it has to have, in their order."""
        self.audit = audit
        places = {place_of(key) for key in self.states}
        assert {place_of(row["call"]) for row in audit} <= places
        for key, states in self.states.items():
            self.states[key] = _as_audited(states, key, audit)
            assert self.states[key], (
                f"{key}: the audit says {rows_of(audit, key), refused_of(audit, key)}, the rules {states}"
            )
        cancelled = {place_of(key).split(".")[0] for key in self.states if self.case(key).outcome == "cancelled"}
        failing = {place_of(key).split(".")[0] for key in self.states if self.case(key).ends_run}
        assert self.cancelled or cancelled <= failing, f"cancelled without a reason: {self.states}"

    def _reject(self, found: Counter[tuple[str, str]], audit: list[Row]) -> None:
        """What the run says of signals that it couldn't use is what the rules say, of all calls together."""
        for key, states in self.states.items():
            self.states[key] = _as_audited(states, key, audit)
            assert self.states[key], (
                f"{key}: the audit says {rows_of(audit, key), refused_of(audit, key)}, the rules {states}"
            )
        ways: list[set[Rejected]] = [{case.rejected for case in states} for states in self.states.values()]
        right = [way for way in product(*ways) if Counter(chain(*way)) == found]
        assert right, f"rejected are {found}, the rules say {self.states}"
        for index, (key, states) in enumerate(self.states.items()):
            self.states[key] = frozenset(case for case in states if case.rejected in {way[index] for way in right})

    def _weigh(self, answers: Answers, together: bool) -> None:
        """Each answer is one that the rules allow, together with the others."""
        self.answers += answers
        for message, reply in answers:
            seen = reply.applied or reply.refused in REFUSALS or (reply == UNSEEN and message.op.via == "signal")
            assert seen or (reply == CLOSED and self.may_end), (message, reply)
            if message.key is None:
                assert reply in (CLOSED, UNSEEN) or reply.refused == _unnamed(message), (message, reply)
        for key, states in self.states.items():
            mine = [(message, reply) for message, reply in answers if message.key == key]
            self.states[key] = explained(states, mine, together)
            assert self.states[key], f"{key}: no rule gives {mine} in {states}"

    def compare(self, step: int, pending: Sequence[Row]) -> None:
        """What is shown as waiting is what the rules say: these calls, with these arguments and votes."""
        rows = {self.planned(row["call"]): row for row in pending}
        for key, states in self.states.items():
            self.states[key] = frozenset(case for case in later(states) if as_shown(case, rows.get(key)))
            assert self.states[key], f"{key}: shown is {rows.get(key)}, the rules say {states}"
        due = {key for key in self.begun(step) if self.case(key).undecided}
        assert due == set(rows), f"{due} have to wait, {set(rows)} do"
        self.shown |= {row["call"]: row for row in pending}

    def over(self, step: int) -> bool:
        """Whether every call of a step is decided that has its turn."""
        return not any(self.case(key).undecided for key in self.begun(step))

    def begun(self, step: int) -> list[str]:
        """The calls of a step that have their turn: all but those after a group that isn't decided, or ends the run.

        Calls run together; one of a sequential tool is a group of its own.
        """
        groups: list[list[str]] = [[]]
        for key, call in self.scenario.step_calls(step):
            if call.alone and call.kind not in BROKEN:
                groups += [[key], []]
            else:
                groups[-1].append(key)
        found: list[str] = []
        for group in groups:
            found += group
            if any(self.case(key).undecided or self.case(key).ends_run for key in group):
                break
        return found

    def runs(self, key: str) -> bool:
        """Whether the tool of a call has to have done its work by now."""
        return self.case(key).may_run and key in self.begun(int(key.split(".")[0]) - 1)


def _known(message: Sent, reply: Reply, events: dict[str, str]) -> Reply:
    """The reply; for a signal that counted, what the audit says of it."""
    if message.op.via == "update" or reply == CLOSED or message.tag not in events:
        return reply
    event = events[message.tag]
    return Reply(applied="completed" if event == "failed" else event)


def _unnamed(message: Sent) -> str:
    """How a message is refused that names no call rightly."""
    return "NotPending" if message.op.flaw in ("short", "nobody's") else "InvalidRequest"


def unnamed_signal(message: Sent, reply: Reply) -> bool:
    """Whether it has to be in `rejected` and concerns no call."""
    return message.op.via == "signal" and message.key is None and reply != CLOSED


def type_of(reason: str) -> str:
    """The type of error that a text in `rejected` stands for."""
    if "is already decided" in reason:
        return "AlreadyDecided"
    if re.search(r"no call '.*' waits|waits for \w+: use|the run is ending", reason):
        return "NotPending"
    return "NotAllowed" if re.search(r"may not (decide|be edited)", reason) else "InvalidRequest"


def row_of(row: Row) -> tuple[str, str, str]:
    """A row of the audit as the rules write it."""
    tag = {"completed": "by", "failed": "by", "edited": "new_call"}.get(row["event"], "reason")
    return row["event"], row.get(tag, ""), row["call"]


def rows_of(audit: Sequence[Row], key: str) -> Rows:
    """The rows of a call, under any of its keys."""
    mine = (row for row in audit if place_of(row["call"]) == place_of(key))
    return tuple(row_of(row) for row in mine if row["event"] in DECISIVE)


def refused_of(audit: Sequence[Row], key: str) -> Refused:
    """What is kept of decisions on a call that came to nothing."""
    mine = [row for row in audit if place_of(row["call"]) == place_of(key) and row["event"] == "refused"]
    types = (row["reason"].split(":")[0] for row in mine)
    found = zip(mine, types, strict=True)
    return tuple(sorted((row["call"], row["decision"], row["claimed_by"], row["via"], type) for row, type in found))


def _as_audited(states: frozenset[Case], key: str, audit: Sequence[Row]) -> frozenset[Case]:
    rows, refused = rows_of(audit, key), refused_of(audit, key)
    return frozenset(case for case in later(states) if case.rows == rows and case.refused == refused)


def as_shown(case: Case, row: Row | None) -> bool:
    """Whether `pending` shows of a call what the rules say."""
    if row is None:
        return case.stage != "waits"
    if case.stage != "waits" or row["args"] != case.args or row["call"] != case.key:
        return False
    seen = row.get("approvers", []), sorted(row.get("votes", [])), row.get("needed", 1)
    return seen == (list(case.terms.approvers), list(case.votes), case.terms.quorum - len(case.votes))
