"""The rules of approvals, written down a second time: pure, small, and without a line of perdure.

A call that waits is an automaton, moved by what people send and by time; `explained`: the states that fit the answers.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, Literal

from tests.decisions.scenario import OUTSIDE, Call, Kind, Sent, bound_key, place_of

Rows = tuple[tuple[str, str, str], ...]
"""The audit of a call: what happened, the tag of what was sent (of an edit: the new key), and under which key."""
Refused = tuple[tuple[str, str, str, str, str], ...]
"""What the audit keeps of decisions that came to nothing: key, verb, by, via, type of the refusal. Sorted."""
Rejected = tuple[tuple[str, str], ...]
"""Signals that came to nothing: verb and type of the refusal. Sorted."""
MAX_REFUSED = 20


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
    key: str = ""
    """The key in the answer of an update."""


CLOSED = Reply(refused="closed")
"""The run had ended."""
UNSEEN = Reply()
"""Of a signal that was refused, or repeated a vote."""


@dataclass(frozen=True)
class Case:
    """One call, as the rules see it."""

    call: Call
    key: str
    """The one that is shown, and that runs."""
    former: tuple[str, ...] = ()
    """Those from before its edits."""
    stage: Literal["future", "next", "waits", "over"] = "future"
    """`next`: its step has begun, so it may begin to wait at any time."""
    shown: str = ""
    """JSON of the arguments that are shown, and that will run."""
    terms: Terms = Terms()
    votes: tuple[str, ...] = ()
    outcome: str = ""
    rows: Rows = ()
    refused: Refused = ()
    rejected: Rejected = ()
    """Since the run was looked at last."""

    @staticmethod
    def of(key: str, call: Call) -> Case:
        """A call before it begins."""
        return Case(call, key, shown=json.dumps(call.args), terms=TERMS.get(call.kind, Terms()))

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


def refusals(case: Case, sent: Sent) -> set[tuple[str, bool]]:
    """The types of error that what was sent deserves, each with whether the audit keeps it; none where it counts.

    Kept is what comes to nothing because it is too late, and what is refused when its turn comes.
    """
    types = {"InvalidRequest"} if sent.op.flaw else set[str]()
    wrong_verb = (sent.verb == "complete") != (case.call.kind in OUTSIDE)
    known = sent.address == case.key or sent.address in case.former
    if wrong_verb or case.stage in ("future", "next") or not known:
        types.add("NotPending")
    if not wrong_verb and sent.verb != "complete":
        types |= _decision_refusals(case.terms, sent)
    found = {(one, False) for one in types}
    if case.stage == "over" or sent.address in case.former:
        found.add(("AlreadyDecided", True))
    if case.outcome == "cancelled":
        found.add(("NotPending", True))  # it was in line when the run began to end
    if case.terms == ESCALATED and sent.op.by in PEOPLE:
        found.add(("NotAllowed", True))  # it was in line when others were asked
    bad_edit = sent.verb == "approve" and sent.op.edit and not edited(sent.op.edit)
    return found or set([("InvalidRequest", True)] if bad_edit else [])


def _decision_refusals(terms: Terms, sent: Sent) -> set[str]:
    found: set[str] = set()
    if terms.approvers and sent.op.by not in terms.approvers:
        found.add("NotAllowed")
    if terms.quorum > 1 and not sent.op.by and sent.verb == "approve":
        found.add("InvalidRequest")
    if sent.op.edit and not terms.editable and sent.verb == "approve":
        found.add("NotAllowed")
    if sent.op.edit and sent.verb == "deny":
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
    """A call after a decision that counts, and what its sender is told."""
    if sent.verb == "approve":
        return _approved(case, sent)
    outcome = "denied" if sent.verb == "deny" else "failed" if sent.op.do == "refuse" else "completed"
    answer = "denied" if sent.verb == "deny" else "completed"
    return replace(case, stage="over", outcome=outcome, rows=(*case.rows, (outcome, sent.tag, case.key))), answer


def _approved(case: Case, sent: Sent) -> tuple[Case, str]:
    if sent.op.edit:
        case = _edited(case, edited(sent.op.edit))
    if sent.op.by in case.votes:
        return case, "voted"
    case = replace(case, votes=tuple(sorted({*case.votes, sent.op.by})))
    enough = len(case.votes) >= case.terms.quorum
    event = "approved" if enough else "voted"
    case = replace(case, rows=(*case.rows, (event, sent.tag, case.key)))
    return (replace(case, stage="over", outcome=event) if enough else case), event


def _edited(case: Case, shown: str) -> Case:
    """With other arguments it has another key, and no votes."""
    former = (*case.former, case.key)
    key = bound_key(f"{place_of(case.key)}+{len(former)}", case.call.tool, json.loads(shown))
    rows = (*case.rows, ("edited", key, case.key))
    return replace(case, key=key, former=former, shown=shown, votes=(), rows=rows)


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
        yield replace(case, stage="waits", rows=(("asked", "", case.key),))
    if case.stage != "waits":
        return
    yield replace(case, stage="over", outcome="cancelled", rows=(*case.rows, ("cancelled", "", case.key)))
    if case.terms.expiry == "ends":
        yield replace(case, stage="over", outcome="expired", rows=(*case.rows, ("expired", "", case.key)))
    elif case.terms.expiry == "escalates":
        yield replace(case, terms=ESCALATED, votes=(), rows=(*case.rows, ("escalated", "", case.key)))


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
    for type, kept in refused:
        if reply in (UNSEEN, Reply(refused=type)):
            yield _refused(case, sent, type, kept)
    if reply == CLOSED:
        yield case
    elif not refused:
        after, answer = applied(case, sent)
        repeated = reply == UNSEEN and after.rows == case.rows
        if repeated or (reply.applied == answer and reply.key in ("", after.key)):
            yield after


def _refused(case: Case, sent: Sent, type: str, kept: bool) -> Case:
    """What is left of what came to nothing: a row in the audit, and where it was a signal a row in `rejected`."""
    if sent.op.via == "signal":
        case = replace(case, rejected=tuple(sorted((*case.rejected, (sent.verb, type)))))
    if kept and sum(address == sent.address for address, *_ in case.refused) < MAX_REFUSED:
        row = (sent.address, sent.verb, sent.by, sent.op.via, type)
        case = replace(case, refused=tuple(sorted((*case.refused, row))))
    return case


def _signals_in_order(order: Sequence[tuple[Sent, Reply]], answers: Sequence[tuple[Sent, Reply]]) -> bool:
    signals = [one for one in answers if one[0].op.via == "signal"]
    return [one for one in order if one[0].op.via == "signal"] == signals
