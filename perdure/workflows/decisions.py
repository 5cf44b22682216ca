"""Who may decide what waits, and what a decision makes of it. Pure.

A decision is bound to one call by its key and used once: the first valid one that arrives wins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Complete, Decide, Decided, PlannedCall, TokenUse, VerbName, args_digest
    from perdure.errors import AlreadyDecided, InvalidRequest, NotAllowed, NotPending
    from perdure.workflows.waits import Arrival, Resolution, Waiting, Who


def find(waiting: Mapping[str, Waiting], done: Mapping[str, str], key: str, verb: VerbName) -> Waiting:
    """What waits under `key`. Raises, naming what is pending: `AlreadyDecided`, `NotPending`."""
    pending = sorted(waiting)
    found = waiting.get(key)
    if found is None and key in done:
        raise AlreadyDecided(f"call {key!r} is already decided: {done[key]}")
    if found is None:
        near = [full for full in pending if re.split("[+-]", full)[0] == re.split("[+-]", key)[0]]
        hint = f"; did you mean {near[0]!r}? The whole key is needed, it is bound to what was shown" if near else ""
        raise NotPending(f"no call {key!r} waits{hint}. Pending: {pending}")
    if found.kind == "limit" and verb != "deny":
        raise NotPending(f"{key!r} waits for a limit to be raised: use set_limits or deny. Pending: {pending}")
    if found.kind != "limit" and (found.kind == "approval") == (verb == "complete"):
        fitting = "approve or deny" if found.kind == "approval" else "complete"
        raise NotPending(f"call {key!r} waits for {found.kind}: use {fitting}. Pending: {pending}")
    return found


def check_right(waiting: Waiting, who: Who, arrival: Arrival, started_by: str) -> None:
    """Raise `NotAllowed` or `InvalidRequest` where this person may not decide this, or not so."""
    terms, key = waiting.terms, waiting.key
    if terms.approvers and not who.name and not who.groups:
        raise NotAllowed(f"say who you are in 'by' (`--by NAME`) to decide call {key!r}. Approvers: {terms.approvers}")
    if not who.is_among(terms.approvers):
        raise NotAllowed(f"{who.name!r} may not decide call {key!r}. Approvers: {terms.approvers}")
    if arrival.verb != "approve":
        return
    if not who.name and (terms.quorum > 1 or terms.forbid_self):
        people = f"{terms.quorum} different people" if terms.quorum > 1 else "somebody else than who asked"
        raise InvalidRequest(f"call {key!r} needs {people}: say who you are in 'by'")
    if terms.forbid_self and who.is_person(started_by):
        raise NotAllowed(f"{who.name!r} started the run and may not approve call {key!r}")
    if terms.forbid_self and who.is_person(waiting.edited_by):
        raise NotAllowed(f"{who.name!r} edited the arguments of call {key!r} and may not approve them")
    if isinstance(arrival.sent, Decide) and arrival.sent.args is not None and not terms.allow_edit:
        raise NotAllowed(f"the arguments of call {key!r} may not be edited: its policy has allow_edit=False")


def edit(waiting: Waiting, who: Who, edited: PlannedCall) -> None:
    """Other arguments are shown from now on, under another key. Votes before are void: they meant what was shown."""
    waiting.call, waiting.edited_by, waiting.votes = edited, who.name, []


def approve(waiting: Waiting, who: Who, reason: str) -> Decided:
    """Count a vote; the last one that is needed approves. With `forbid_self` the vote of who edited doesn't count."""
    if waiting.terms.forbid_self and who.is_person(waiting.edited_by):
        return Decided(call=waiting.key, outcome="edited", needed=waiting.needed)
    if who.name not in waiting.votes:
        waiting.votes.append(who.name)
    if waiting.needed:
        return Decided(call=waiting.key, outcome="voted", needed=waiting.needed)
    waiting.resolution = Resolution("approved", reason, by=who.name, verified=who.verified)
    return Decided(call=waiting.key, outcome="approved")


def deny(waiting: Waiting, who: Who, reason: str) -> Decided:
    """One denial is enough."""
    waiting.resolution = Resolution("denied", reason, by=who.name, verified=who.verified)
    return Decided(call=waiting.key, outcome="denied")


def complete(waiting: Waiting, who: Who, sent: Complete) -> Decided:
    """The result, or the error, of a call that was made outside."""
    outcome: Literal["failed", "completed"] = "completed" if sent.error is None else "failed"
    waiting.resolution = Resolution(outcome, sent.error or "", sent.result, who.name, who.verified)
    return Decided(call=waiting.key, outcome="completed")


def token_use(waiting: Waiting, arrival: Arrival, workflow_id: str) -> TokenUse:
    """What a token that comes with a decision has to be made for."""
    about: Any = waiting.call.args
    if isinstance(arrival.sent, Complete):
        error = arrival.sent.error
        about = {"result": arrival.sent.result} if error is None else {"error": error}
    elif arrival.sent.args is not None:
        about = arrival.sent.args
    return TokenUse(
        workflow_id=workflow_id,
        call=waiting.key,
        decision=arrival.verb,
        digest=args_digest(about),
        at=arrival.at.isoformat(),
    )


def expired_text(waiting: Waiting) -> str:
    """What the model is told where nobody decided in time."""
    if waiting.kind == "approval":
        return "No decision came in time, so the call was not made. This is not a denial: nobody answered."
    return "No result came in time. The call may still be made outside: check before you repeat it."
