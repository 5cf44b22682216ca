"""What a run has used and what is left of its limits. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Limits, Usage
    from perdure.errors import InvalidRequest, LimitExceeded


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
    changed = {name: getattr(asked, name) for name in sorted(asked.model_fields_set)}
    for name, value in changed.items():
        most = getattr(agent, name)
        if most is not None and (value is None or value > most):
            raise InvalidRequest(
                f"limits.{name}={value!r} is more than the agent allows ({most!r}). A run may only lower a limit; "
                f"raise it in DurableAgent(limits=Limits({name}=…))."
            )
    return agent.model_copy(update=changed)


def check_before_request(limits: Limits, usage: Usage) -> None:
    """Raise `LimitExceeded` if one more model request isn't allowed."""
    check_after_request(limits, usage)
    if limits.requests is not None and usage.requests >= limits.requests:
        raise LimitExceeded(f"the run has made {usage.requests} model requests, its limit is {limits.requests}")


def check_after_request(limits: Limits, usage: Usage) -> None:
    """Raise `LimitExceeded` if tokens or cost are over. Reached exactly is allowed, as in Pydantic AI."""
    used = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    for name, value in used.items():
        most: int | None = getattr(limits, name)
        if most is not None and value > most:
            raise LimitExceeded(f"the run has used {value} {name}, its limit is {most}")
    if limits.cost is None:
        return
    if usage.unpriced_requests:
        raise LimitExceeded(
            f"the cost of {usage.unpriced_requests} model requests is unknown while limits.cost={limits.cost} is set: "
            "Pydantic AI has no price for the model. Remove the limit, or register a price."
        )
    if usage.cost is not None and usage.cost > limits.cost:
        raise LimitExceeded(f"the run has cost {usage.cost} US dollars, its limit is {limits.cost}")


def check_before_calls(limits: Limits, usage: Usage, calls: int) -> None:
    """Raise `LimitExceeded` if a step's `calls` would go over the limit of tool calls: then none of them starts."""
    if limits.tool_calls is not None and usage.tool_calls + calls > limits.tool_calls:
        raise LimitExceeded(
            f"the step asks for {calls} tool calls after {usage.tool_calls}, the run's limit is {limits.tool_calls}"
        )
