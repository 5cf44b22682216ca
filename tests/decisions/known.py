"""What is known of the calls of a run, by the rules and by what was seen. Fails where the two don't agree."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.decisions.rules import CLOSED, Case, Reply, Rows, explained, later
from tests.decisions.scenario import Scenario, Sent

Row = dict[str, Any]
Answers = list[tuple[Sent, Reply]]
REFUSALS = {"InvalidRequest", "NotPending", "AlreadyDecided", "NotAllowed"}
DECISIVE = ("asked", "voted", "approved", "denied", "completed", "expired", "escalated")
"""Rows of the audit that the rules foresee one by one; `ran` follows when the tool has ended."""


@dataclass
class Known:
    """The states that each call may be in: one, but while a race is open."""

    scenario: Scenario
    states: dict[str, frozenset[Case]]
    answers: Answers = field(default_factory=lambda: [])
    shown: dict[str, Row] = field(default_factory=lambda: {})
    """By key: what `pending` showed of a call when it was last seen waiting."""
    audit: list[Row] = field(default_factory=lambda: [])
    rejected: list[Row] = field(default_factory=lambda: [])
    """As they were read last."""
    cancelled: bool = False

    @staticmethod
    def before(scenario: Scenario) -> Known:
        """Before anything has happened."""
        return Known(scenario, {key: frozenset({Case.of(call)}) for key, call in scenario.calls()})

    def case(self, key: str) -> Case:
        """The state of a call."""
        return min(self.states[key], key=str)

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
        events = {tag: event for event, tag in map(row_of, audit) if tag}
        news = deque(status["rejected"][len(self.rejected) :])  # of the last 50, which no scenario reaches
        self.rejected = status["rejected"]
        for answers, together in waves:
            self._weigh([(message, _known(message, reply, events, news)) for message, reply in answers], together)
        assert not news, f"rejected, but not sent: {list(news)}"

    def learn(self, audit: list[Row]) -> None:
        """Hold the audit against the rules: each call has the rows it has to have, in their order."""
        self.audit = audit
        assert {row["call"] for row in audit} <= set(self.states)
        for key, states in self.states.items():
            self.states[key] = frozenset(case for case in later(states) if case.rows == rows_of(audit, key))
            assert self.states[key], f"{key}: the audit says {rows_of(audit, key)}, the rules {states}"

    def _weigh(self, answers: Answers, together: bool) -> None:
        """Each answer is one that the rules allow, together with the others."""
        self.answers += answers
        for message, reply in answers:
            assert reply.applied or reply.refused in REFUSALS or (reply == CLOSED and self.cancelled), (message, reply)
            if message.key is None:
                right = "NotPending" if message.op.flaw in ("short", "nobody's") else "InvalidRequest"
                assert reply == CLOSED or reply.refused == right, (message, reply)
        for key, states in self.states.items():
            mine = [(message, reply) for message, reply in answers if message.key == key]
            self.states[key] = explained(states, mine, together)
            assert self.states[key], f"{key}: no rule gives {mine} in {states}"

    def compare(self, step: int, pending: Sequence[Row]) -> None:
        """What is shown as waiting is what the rules say: these calls, with these arguments and votes."""
        rows = {row["call"]: row for row in pending}
        for key, states in self.states.items():
            self.states[key] = frozenset(case for case in later(states) if as_shown(case, rows.get(key)))
            assert self.states[key], f"{key}: shown is {rows.get(key)}, the rules say {states}"
        due = {key for key in self.begun(step) if self.case(key).undecided}
        assert due == set(rows), f"{due} have to wait, {set(rows)} do"
        self.shown |= rows

    def over(self, step: int) -> bool:
        """Whether every call of a step is decided that has its turn."""
        return not any(self.case(key).undecided for key in self.begun(step))

    def begun(self, step: int) -> list[str]:
        """The calls of a step that have their turn: all but those after a group that isn't decided, or ends the run.

        Calls run together; one of a sequential tool is a group of its own.
        """
        groups: list[list[str]] = [[]]
        for key, call in self.scenario.step_calls(step):
            if call.alone and call.kind not in ("bad", "unknown"):
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


def _known(message: Sent, reply: Reply, events: dict[str, str], news: deque[Row]) -> Reply:
    """The reply, for a signal by the audit or else by the next row of `rejected`: it is in one of the two."""
    if message.op.via == "update" or reply == CLOSED:
        return reply
    if message.tag in events:
        return Reply(applied=events[message.tag])
    assert news, f"neither applied nor rejected: {message}"
    row = news.popleft()
    assert row["signal"] == message.verb
    return Reply(refused=type_of(row["reason"]))


def type_of(reason: str) -> str:
    """The type of error that a text in `rejected` stands for."""
    if re.search(r"already decided|already has its result", reason):
        return "AlreadyDecided"
    if re.search(r"no call '.*' waits|waits for \w+: use", reason):
        return "NotPending"
    return "NotAllowed" if re.search(r"may not (decide|be edited)", reason) else "InvalidRequest"


def row_of(row: Row) -> tuple[str, str]:
    """A row of the audit as the rules write it."""
    return row["event"], row.get("by" if row["event"] == "completed" else "reason", "")


def rows_of(audit: Sequence[Row], key: str) -> Rows:
    """The rows of a call."""
    return tuple(row_of(row) for row in audit if row["call"] == key and row["event"] in DECISIVE)


def as_shown(case: Case, row: Row | None) -> bool:
    """Whether `pending` shows of a call what the rules say."""
    if row is None:
        return case.stage != "waits"
    if case.stage != "waits" or row["args"] != case.args:
        return False
    seen = row.get("approvers", []), sorted(row.get("votes", [])), row.get("needed", 1)
    return seen == (list(case.terms.approvers), list(case.votes), case.terms.quorum - len(case.votes))
