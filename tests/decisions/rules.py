"""The rules of approvals, written down a second time: pure, small, and without a line of perdure.

A call that waits is a small automaton. What people send and what time does moves it; `explained` says which of its
states agree with the answers that people got, in some order where they sent at once.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, Literal

from tests.decisions.scenario import OUTSIDE, Call, Kind, Sent

Rows = tuple[tuple[str, str], ...]
"""The audit of a call: what happened, and the tag of what was sent, if anything was."""


@dataclass(frozen=True)
class Terms:
    """Who may decide a call."""

    approvers: tuple[str, ...] = ()
    quorum: int = 1
    editable: bool = False
    expiry: Literal["", "ends", "escalates"] = ""


PEOPLE = ("ann", "bob")
TERMS: dict[Kind, Terms] = {
    "policy": Terms(PEOPLE, editable=True),
    "quorum": Terms((*PEOPLE, "eve"), quorum=2, editable=True),
    "brief": Terms(PEOPLE, expiry="ends"),
    "brief_external": Terms(expiry="ends"),
    "fails": Terms(PEOPLE, expiry="ends"),
    "escalates": Terms(PEOPLE, expiry="escalates"),
}
"""Anyone may decide what isn't here."""
ESCALATED = Terms(("boss",))


@dataclass(frozen=True)
class Reply:
    """What became of what was sent: what it came to, or the type of the refusal."""

    applied: str = ""
    refused: str = ""


CLOSED = Reply(refused="closed")
"""The run had ended."""


@dataclass(frozen=True)
class Case:
    """One call, as the rules see it."""

    call: Call
    stage: Literal["future", "next", "waits", "over"] = "future"
    """`next`: its step has begun, so it may begin to wait at any time."""
    shown: str = ""
    """JSON of the arguments that are shown, and that will run."""
    terms: Terms = Terms()
    votes: tuple[str, ...] = ()
    outcome: str = ""
    rows: Rows = ()

    @staticmethod
    def of(call: Call) -> Case:
        """A call before it begins."""
        return Case(call, shown=json.dumps(call.args), terms=TERMS.get(call.kind, Terms()))

    @property
    def args(self) -> dict[str, Any]:
        return json.loads(self.shown)

    @property
    def undecided(self) -> bool:
        """Whether it has to be decided before the model is asked again."""
        return self.call.waits and self.stage != "over"

    @property
    def ends_run(self) -> bool:
        """Whether the run fails for it."""
        return self.call.kind == "fails" and self.outcome == "expired"

    @property
    def may_run(self) -> bool:
        """Whether its tool may do its work, if it has its turn."""
        if self.call.waits:
            return self.outcome == "approved"
        return self.call.kind in ("plain", "when") and self.stage != "future"


def refusals(case: Case, sent: Sent) -> set[str]:
    """The types of error that what was sent deserves; none where it counts."""
    found = {"InvalidRequest"} if sent.op.flaw else set[str]()
    wrong_verb = (sent.verb == "complete") != (case.call.kind in OUTSIDE)
    if wrong_verb or case.stage in ("future", "next"):
        found.add("NotPending")
    if case.stage == "over":
        found.add("AlreadyDecided")
    return found if wrong_verb or sent.verb == "complete" else found | _decision_refusals(case.terms, sent)


def _decision_refusals(terms: Terms, sent: Sent) -> set[str]:
    found: set[str] = set()
    if terms.approvers and sent.op.by not in terms.approvers:
        found.add("NotAllowed")
    if terms.quorum > 1 and not sent.op.by:
        found.add("InvalidRequest")
    if sent.op.edit and not (terms.editable and edited(sent.op.edit)):
        found.add("NotAllowed")
    if sent.op.edit and (sent.verb == "deny" or sent.op.via == "signal"):
        found.add("InvalidRequest")
    return found


def edited(text: str) -> str:
    """Arguments in an edit as the tool takes them; nothing where it doesn't."""
    args = json.loads(text)
    try:
        return json.dumps({"n": int(args["n"]), "note": args.get("note", "none")})
    except (KeyError, ValueError):
        return ""


def applied(case: Case, sent: Sent) -> tuple[Case, str]:
    """A call after a decision that counts, and what the decision came to."""
    if sent.verb == "approve":
        return _approved(case, sent)
    outcome = "denied" if sent.verb == "deny" else "failed" if sent.op.do == "refuse" else "completed"
    event = "denied" if sent.verb == "deny" else "completed"
    return replace(case, stage="over", outcome=outcome, rows=(*case.rows, (event, sent.tag))), event


def _approved(case: Case, sent: Sent) -> tuple[Case, str]:
    if sent.op.edit:
        case = replace(case, shown=edited(sent.op.edit), votes=())
    case = replace(case, votes=tuple(sorted({*case.votes, sent.op.by})))
    enough = len(case.votes) >= case.terms.quorum
    event = "approved" if enough else "voted"
    case = replace(case, rows=(*case.rows, (event, sent.tag)))
    return (replace(case, stage="over", outcome=event) if enough else case), event


def later(cases: Iterable[Case]) -> frozenset[Case]:
    """Every state that a call may have come to by itself."""
    found, todo = set[Case](), list(cases)
    while todo:
        case = todo.pop()
        if case not in found:
            found.add(case)
            todo += _by_itself(case)
    return frozenset(found)


def _by_itself(case: Case) -> Iterator[Case]:
    if case.stage == "next" and case.call.waits:
        yield replace(case, stage="waits", rows=(("asked", ""),))
    elif case.stage == "waits" and case.terms.expiry == "ends":
        yield replace(case, stage="over", outcome="expired", rows=(*case.rows, ("expired", "")))
    elif case.stage == "waits" and case.terms.expiry == "escalates":
        yield replace(case, terms=ESCALATED, votes=(), rows=(*case.rows, ("escalated", "")))


def explained(cases: Collection[Case], answers: Sequence[tuple[Sent, Reply]], together: bool) -> frozenset[Case]:
    """The states that agree with the answers, in the order of sending or, where it was at once, in any."""
    orders = permutations(answers) if together else [answers]
    return frozenset(case for order in orders if _signals_in_order(order, answers) for case in _along(cases, order))


def _along(cases: Collection[Case], order: Sequence[tuple[Sent, Reply]]) -> frozenset[Case]:
    found = later(cases)
    for sent, reply in order:
        found = later(after for case in found for after in _agreeing(case, sent, reply))
    return found


def _agreeing(case: Case, sent: Sent, reply: Reply) -> Iterator[Case]:
    """The state after what was sent, if the answer is the right one."""
    refused = refusals(case, sent)
    if reply == CLOSED or reply.refused in refused:
        yield case
    elif not refused:
        after, event = applied(case, sent)
        if reply.applied == event:
            yield after


def _signals_in_order(order: Sequence[tuple[Sent, Reply]], answers: Sequence[tuple[Sent, Reply]]) -> bool:
    signals = [one for one in answers if one[0].op.via == "signal"]
    return [one for one in order if one[0].op.via == "signal"] == signals
