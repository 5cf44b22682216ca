"""`set_limits` and `set_model`: what may be changed while a run is open, by whom, and what comes of it."""

from __future__ import annotations

from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import LIMITS, Json, NewLimits, NewModel, SetLimits, SetModel, TokenUse, args_digest
    from perdure.errors import InvalidRequest, NotAllowed, NotPending
    from perdure.workflows import asides, budget, details, waits
    from perdure.workflows.entry import one_argument
    from perdure.workflows.rollover import refuse_while_rolling
    from perdure.workflows.state import RunState
    from perdure.workflows.tokens import check_token
    from perdure.workflows.waits import Resolution, Via, Who


def check_limits(state: RunState, raw: tuple[Any, ...]) -> None:
    """Raise what the sender of `set_limits` is told by the update; nothing is recorded then."""
    refuse_while_rolling(state)
    sent = one_argument(raw, SetLimits)
    _open(state)
    _check_limits(state, sent)


async def set_limits(state: RunState, raw: tuple[Any, ...], via: Via) -> NewLimits:
    """Change limits, and let the run go on where it waits for one of them. Before the run is prepared it waits for
    that. Raises `InvalidRequest`, `NotAllowed`, `NotChecked`, `NotPending`."""
    sent = one_argument(raw, SetLimits)
    await _prepared(state)
    _check_limits(state, sent)
    who = await _who(state, sent)
    _open(state)
    _check_right(state, sent, who)
    before = state.limits.model_dump(mode="json")
    state.limits = budget.changed(state.limits, sent.limits)
    given = sent.limits.given()
    both = {"limits": given, "before": {name: before[name] for name in given}}
    _note(state, "set_limits", who, via, **both, reason=sent.reason)
    waiting = _raised(state, who, sent.reason)
    details.waits(state)
    return NewLimits(limits=state.limits, waits=waiting)


def _raised(state: RunState, who: Who, reason: str) -> list[str]:
    """Let the run go on where it waits for a limit that isn't reached any more; the key of what still waits."""
    waiting = waits.of_limit(state.waiting)
    if waiting is None or waiting.resolution is not None or state.check is None:
        return []
    found = state.check()
    if found is None or found.limit != waiting.call.args["limit"]:
        waiting.resolution = Resolution("raised", reason, by=who.name, verified=who.verified)
        return []
    waiting.call = waiting.call.model_copy(update={"args": found.shown()})
    return [waiting.key]


def check_model(state: RunState, raw: tuple[Any, ...]) -> None:
    """Raise what the sender of `set_model` is told by the update; nothing is recorded then."""
    refuse_while_rolling(state)
    sent = one_argument(raw, SetModel)
    _open(state)
    _check_model(state, sent)


async def set_model(state: RunState, raw: tuple[Any, ...], via: Via) -> NewModel:
    """Use another model from the next request on. Before the run is prepared it waits for that. Raises
    `InvalidRequest`, `NotPending`."""
    sent = one_argument(raw, SetModel)
    await _prepared(state)
    _check_model(state, sent)
    before, state.next_model = state.next_model, sent.model
    _note(state, "set_model", Who(sent.by), via, model=sent.model or "(its own)", before=before or "(its own)")
    details.waits(state)
    return NewModel(model=sent.model, id=details.model_id(state))


async def _prepared(state: RunState) -> None:
    """Wait until the run knows its agent. The run waits for whoever does so, before it begins."""
    if state.plan is None:
        state.early += 1
        await workflow.wait_condition(lambda: state.plan is not None or state.done)
        state.early -= 1
    _open(state)


def _open(state: RunState) -> None:
    if state.done:
        raise NotPending("the run is ending: nothing can be set any more")


def _check_model(state: RunState, sent: SetModel) -> None:
    if state.plan is not None and (sent.model or "") not in state.plan.models:
        known = sorted(key for key in state.plan.models if key)
        own = ", null for its own" if "" in state.plan.models else ""
        raise InvalidRequest(f"agent {state.agent!r} has no model {sent.model!r}. Known models: {known}{own}")


def _check_limits(state: RunState, sent: SetLimits) -> None:
    """What needs no activity."""
    if not sent.limits.model_fields_set:
        raise InvalidRequest("limits is empty: name at least one")
    if state.plan is None:
        return
    if not state.plan.verifies:
        if sent.token:
            raise InvalidRequest("this app has no verifier, so nobody can check a 'token': leave it out")
        _check_right(state, sent, Who(sent.by))
        return
    if not sent.token:
        raise InvalidRequest("limits can't be set without a 'token' that shows who you are")
    if not state.plan.encrypts:
        check_token(sent.token, _use(sent))


def _check_right(state: RunState, sent: SetLimits, who: Who) -> None:
    """Raise `NotAllowed` where this person may not set limits, or nobody may raise them so far."""
    plan = state.plan
    if plan is None:
        return
    above = state.request.within if state.request else None
    if above is not None and (more := budget.over(above.room, sent.limits)):
        raise NotAllowed(
            f"limits.{more} may not be more than the run that started this one had left ({getattr(above.room, more)!r})"
        )
    if plan.limit_terms is None:
        if more := budget.over(plan.limits, sent.limits):
            raise NotAllowed(
                f"limits.{more} may not be more than the agent allows ({getattr(plan.limits, more)!r}): nobody may "
                "raise it over that, unless DurableAgent(limit_approval=…) says who"
            )
        return
    waiting = waits.of_limit(state.waiting)
    terms = waiting.terms if waiting is not None else plan.limit_terms
    if not who.is_among(terms.approvers):
        raise NotAllowed(f"{who.name!r} may not set limits. Approvers: {terms.approvers}")
    if terms.forbid_self and (not who.name or who.is_person(state.started_by)):
        raise NotAllowed("whoever started the run may not set its limits: say in 'by' that you are somebody else")


async def _who(state: RunState, sent: SetLimits) -> Who:
    """Who sets limits, by the app's verifier where there is one."""
    if state.plan is None or not state.plan.verifies:
        return Who(sent.by)
    verified = await asides.verify(state, sent.token, _use(sent))
    if verified.principal is None:
        raise NotAllowed(f"who sets limits isn't verified: {verified.problem}")
    name = verified.principal.name
    if sent.by and sent.by != name:
        raise NotAllowed(f"the token of {name!r} can't be used as {sent.by!r}")
    return Who(name, tuple(verified.principal.groups), verified=True)


def _use(sent: SetLimits) -> TokenUse:
    return TokenUse(
        workflow_id=workflow.info().workflow_id,
        call=LIMITS,
        decision="set_limits",
        digest=args_digest(sent.limits.given()),
        at=workflow.now().isoformat(),
    )


def _note(state: RunState, event: str, who: Who, via: Via, **more: Any) -> None:
    """A row of the audit: who, whether that is a claim or verified, and how it came."""
    how: Json = {"verified": True, "groups": list(who.groups)} if who.verified else {"claimed": True}
    row: Json = {"at": workflow.now().isoformat(), "event": event, "by": who.name, "via": via, **how, **more}
    state.audit.append({name: value for name, value in row.items() if value not in ("", [])})
