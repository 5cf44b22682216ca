"""What a run has used and what is left of its limits. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Json, Limits, Usage, jsonable
    from perdure.errors import InvalidRequest

NOTHING = Usage()


def add_usage(total: Usage, more: Usage) -> Usage:
    """`total` and `more` added up. The cost is known as far as any part of it is; what isn't is counted."""
    costs = [cost for cost in (total.cost, more.cost) if cost is not None]
    return Usage(
        requests=total.requests + more.requests,
        tool_calls=total.tool_calls + more.tool_calls,
        input_tokens=total.input_tokens + more.input_tokens,
        output_tokens=total.output_tokens + more.output_tokens,
        cache_read_tokens=total.cache_read_tokens + more.cache_read_tokens,
        cache_write_tokens=total.cache_write_tokens + more.cache_write_tokens,
        cost=sum(costs, Decimal(0)) if costs else None,
        unpriced_requests=total.unpriced_requests + more.unpriced_requests,
        more=_added(total.more, more.more),
        details={name: int(count) for name, count in _added(total.details, more.details).items()},
    )


def _added(left: Mapping[str, float], right: Mapping[str, float]) -> dict[str, float]:
    return {name: left.get(name, 0) + right.get(name, 0) for name in sorted({*left, *right})}


def used_since(before: Usage, now: Usage) -> Usage:
    """What was used since: the difference of two counts of one run."""
    counters = ("requests", "tool_calls", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    fields = {name: getattr(now, name) - getattr(before, name) for name in (*counters, "unpriced_requests")}
    cost = None if now.cost is None else now.cost - (before.cost or Decimal(0))
    more, details = _less(now.more, before.more), _less(now.details, before.details)
    return Usage(**fields, cost=cost, more=more, details={name: int(count) for name, count in details.items()})


def _less(left: Mapping[str, float], right: Mapping[str, float]) -> dict[str, float]:
    rest = {name: count - right.get(name, 0) for name, count in sorted(left.items())}
    return {name: count for name, count in rest.items() if count}


def lowered(agent: Limits, asked: Limits | None) -> Limits:
    """The agent's limits with those of the request, which may only lower them. Raises `InvalidRequest` otherwise."""
    if asked is None:
        return agent
    if more := over(agent, asked):
        raise InvalidRequest(
            f"limits.{more}={getattr(asked, more)!r} is more than the agent allows ({getattr(agent, more)!r}). A run "
            f"may only lower a limit; raise it in DurableAgent(limits=Limits({more}=…))."
        )
    return changed(agent, asked)


def over(most: Limits, asked: Limits) -> str:
    """The first field that is set to more than `most` has; empty = none is."""
    for name in sorted(asked.model_fields_set):
        value, bound = getattr(asked, name), getattr(most, name)
        if bound is not None and (value is None or value > bound):
            return name
    return ""


def changed(limits: Limits, asked: Limits) -> Limits:
    """`limits` with the fields that are set in `asked`."""
    return limits.model_copy(update={name: getattr(asked, name) for name in sorted(asked.model_fields_set)})


@dataclass(frozen=True)
class Reached:
    """A limit that doesn't let the run go on."""

    limit: str
    """The field of `Limits`."""
    used: Any
    allowed: Any
    message: str
    needed: Any = None
    """The least that lets it go on, where that is known and more than what is used."""

    def shown(self) -> Json:
        """As JSON, for people."""
        row: Json = {"limit": self.limit, "used": jsonable(self.used), "allowed": jsonable(self.allowed)}
        return row if self.needed is None else row | {"needed": jsonable(self.needed)}


def before_request(limits: Limits, run: Usage, turn: Usage = NOTHING, counted: int = 0) -> Reached | None:
    """What doesn't let one more model request be made. `counted`: its input tokens, as far as they are known."""
    if found := after_request(limits, run, turn, counted):
        return found
    for prefix, what, used in _scopes(run, turn):
        most = getattr(limits, f"{prefix}requests")
        if most is not None and used.requests >= most:
            text = f"the {what} has made {used.requests} model requests, its limit is {most}"
            return Reached(f"{prefix}requests", used.requests, most, text, used.requests + 1)
    return None


def requests_left(limits: Limits, run: Usage, turn: Usage) -> int | None:
    """How many model requests may still be made; `None` = as many as it takes."""
    bounds = [(getattr(limits, f"{prefix}requests"), used.requests) for prefix, _, used in _scopes(run, turn)]
    return min((most - used for most, used in bounds if most is not None), default=None)


def after_request(limits: Limits, run: Usage, turn: Usage = NOTHING, counted: int = 0) -> Reached | None:
    """What is over: tokens or cost. Reached exactly is allowed, as in Pydantic AI."""
    for prefix, what, used in _scopes(run, turn):
        total = used.input_tokens + used.output_tokens
        counts = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens, "total_tokens": total}
        for name, value in counts.items():
            most = getattr(limits, prefix + name, None)
            if most is not None and value > most:
                return Reached(prefix + name, value, most, f"the {what} has used {value} {name}, its limit is {most}")
    most = limits.request_input_tokens
    if most is not None and counted > most:
        text = f"a model request has {counted} input tokens, its limit is {most}"
        return Reached("request_input_tokens", counted, most, text)
    return _cost(limits, run, turn)


def _cost(limits: Limits, run: Usage, turn: Usage) -> Reached | None:
    if limits.cost is None and limits.turn_cost is None:
        return None
    most, unpriced = limits.unpriced_requests, run.unpriced_requests
    if most is not None and unpriced > most:
        text = (
            f"the cost of {unpriced} model requests is unknown while a limit of the cost is set: Pydantic AI has no "
            "price for the model. Register a price, or allow it with unpriced_requests."
        )
        return Reached("unpriced_requests", unpriced, most, text)
    for prefix, what, used in _scopes(run, turn):
        cost, bound = used.cost, getattr(limits, f"{prefix}cost")
        if bound is not None and cost is not None and cost > bound:
            text = f"the {what} has cost {cost} US dollars, its limit is {bound}"
            return Reached(f"{prefix}cost", cost, bound, text)
    return None


def before_calls(limits: Limits, run: Usage, turn: Usage, calls: int) -> Reached | None:
    """What doesn't let a step's `calls` be made: then none of them starts."""
    for prefix, what, used in _scopes(run, turn):
        most = getattr(limits, f"{prefix}tool_calls")
        if most is not None and used.tool_calls + calls > most:
            text = f"the step asks for {calls} tool calls after {used.tool_calls}, the {what}'s limit is {most}"
            return Reached(f"{prefix}tool_calls", used.tool_calls, most, text, used.tool_calls + calls)
    return None


def _scopes(run: Usage, turn: Usage) -> tuple[tuple[str, str, Usage], ...]:
    return ("", "run", run), ("turn_", "turn", turn)
