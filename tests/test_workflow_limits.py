"""Usage and limits in the workflow, as tables. No server."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from perdure.contracts import (
    Limits,
    Usage,
)
from perdure.errors import InvalidRequest
from perdure.workflows.budget import (
    add_usage,
    after_request,
    before_calls,
    before_request,
    lowered,
)


def test_usage_adds_up_and_an_unknown_cost_is_not_zero() -> None:
    priced = Usage(requests=1, input_tokens=5, cost=Decimal("0.1"), details={"a": 1}, more={"audio_seconds": 0.5})
    unpriced = Usage(requests=1, output_tokens=2, unpriced_requests=1, details={"a": 2}, more={"audio_seconds": 1})
    total = add_usage(priced, unpriced)
    assert (total.requests, total.input_tokens, total.output_tokens) == (2, 5, 2)
    assert (total.cost, total.unpriced_requests) == (Decimal("0.1"), 1)
    assert (total.details, total.more) == ({"a": 3}, {"audio_seconds": 1.5})
    assert add_usage(Usage(), Usage()).cost is None


@pytest.mark.parametrize(
    ("limits", "usage", "turn", "message", "shown"),
    [
        (
            Limits(requests=2),
            Usage(requests=2),
            Usage(),
            "the run has made 2 model requests, its limit is 2",
            {"limit": "requests", "used": 2, "allowed": 2, "needed": 3},
        ),
        (
            Limits(turn_requests=2),
            Usage(requests=7),
            Usage(requests=2),
            "the turn has made 2 model requests, its limit is 2",
            {"limit": "turn_requests", "used": 2, "allowed": 2, "needed": 3},
        ),
        (
            Limits(input_tokens=10),
            Usage(input_tokens=11),
            Usage(),
            "11 input_tokens, its limit is 10",
            {"limit": "input_tokens", "used": 11, "allowed": 10},
        ),
        (
            Limits(output_tokens=10),
            Usage(output_tokens=11),
            Usage(),
            "11 output_tokens",
            {"limit": "output_tokens", "used": 11, "allowed": 10},
        ),
        (
            Limits(turn_total_tokens=10),
            Usage(),
            Usage(input_tokens=6, output_tokens=5),
            "the turn has used 11 total_tokens",
            {"limit": "turn_total_tokens", "used": 11, "allowed": 10},
        ),
        (
            Limits(cost=Decimal(1)),
            Usage(cost=Decimal("1.01")),
            Usage(),
            "the run has cost 1.01 US dollars",
            {"limit": "cost", "used": "1.01", "allowed": "1"},
        ),
        (
            Limits(turn_cost=Decimal(1)),
            Usage(unpriced_requests=1),
            Usage(),
            "cost of 1 model requests is unknown",
            {"limit": "unpriced_requests", "used": 1, "allowed": 0},
        ),
    ],
)
def test_a_used_up_limit_is_named_with_both_values(
    limits: Limits, usage: Usage, turn: Usage, message: str, shown: Any
) -> None:
    found = before_request(limits, usage, turn)
    assert found is not None
    assert message in found.message
    assert found.shown() == shown


def test_limits_reached_exactly_allow_what_was_asked() -> None:
    limits = Limits(requests=2, input_tokens=10, cost=Decimal(1))
    assert before_request(limits, Usage(requests=1, input_tokens=10, cost=Decimal(1))) is None
    assert after_request(limits, Usage(requests=2, input_tokens=10)) is None
    assert before_request(Limits(request_input_tokens=9), Usage(), Usage(), counted=9) is None
    assert before_calls(Limits(tool_calls=3), Usage(tool_calls=1), Usage(), 2) is None
    assert before_calls(Limits(turn_tool_calls=3), Usage(tool_calls=9), Usage(tool_calls=1), 2) is None


def test_calls_that_would_go_over_are_named_with_what_they_need() -> None:
    found = before_calls(Limits(tool_calls=3), Usage(tool_calls=1), Usage(), 3)
    assert found is not None
    assert found.message == "the step asks for 3 tool calls after 1, the run's limit is 3"
    assert found.shown() == {"limit": "tool_calls", "used": 1, "allowed": 3, "needed": 4}


def test_an_unknown_cost_is_ignored_only_where_that_is_said() -> None:
    usage = Usage(requests=3, unpriced_requests=3)
    assert before_request(Limits(), usage) is None, "without a limit of the cost nobody asks for it"
    assert before_request(Limits(cost=Decimal(1), unpriced_requests=None), usage) is None
    assert before_request(Limits(cost=Decimal(1), unpriced_requests=3), usage) is None
    found = before_request(Limits(cost=Decimal(1), unpriced_requests=2), usage)
    assert found is not None
    assert found.limit == "unpriced_requests"


def test_a_request_may_only_lower_limits() -> None:
    agent = Limits(requests=50, cost=None)
    assert lowered(agent, None) == agent
    assert lowered(agent, Limits(requests=3, cost=Decimal(2))) == Limits(requests=3, cost=Decimal(2))
    assert lowered(agent, Limits(deadline=timedelta(seconds=5))).requests == 50
    for asked in (Limits(requests=51), Limits(requests=None)):
        with pytest.raises(InvalidRequest, match=r"limits\.requests=.* is more than the agent allows \(50\)"):
            lowered(agent, asked)
