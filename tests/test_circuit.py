"""P-12, the parts: the states of a circuit, and which exceptions are failures of what a tool calls."""

from __future__ import annotations

import pytest
from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry
from pydantic_ai.exceptions import ToolFailed, UserError
from temporalio.exceptions import ApplicationError

from perdure import Breaker
from perdure.activities.breaker import Circuit, Circuits, Health, health_of
from perdure.errors import AnswerLost, ServerUnreachable, ToolContractViolation
from tests.clocks import Clock


def test_p_12_what_a_call_says_that_began_before_a_change_does_not_count() -> None:
    clock = Clock()
    circuit = Circuit(Breaker(failures=1, reset_after=10), clock)
    early, failing = circuit.enter(), circuit.enter()
    assert early
    assert failing
    circuit.leave(failing, "ill")
    circuit.leave(early, "well")
    assert circuit.enter() is None, "only a trial closes it"
    clock.now += 10
    first = circuit.enter()
    assert first
    assert circuit.enter() is None
    clock.now += 10
    second = circuit.enter()
    assert second, "a trial that doesn't end doesn't bar the next"
    circuit.leave(first, "well")
    assert circuit.enter() is None
    circuit.leave(second, "unclear")
    third = circuit.enter()
    assert third, "a cancelled trial leaves its place"
    circuit.leave(third, "well")
    assert circuit.enter()
    assert circuit.enter(), "closed"


def test_p_12_each_tool_of_each_agent_has_its_own() -> None:
    circuits, breaker = Circuits(), Breaker()
    assert circuits.of("a", "x", breaker) is circuits.of("a", "x", breaker)
    assert circuits.of("a", "x", breaker) is not circuits.of("a", "y", breaker)
    assert circuits.of("a", "x", breaker) is not circuits.of("b", "x", breaker)
    assert circuits.of("a", "x", None) is None


def timed_out() -> Exception:
    """Pydantic AI's own timeout of a tool."""
    try:
        try:
            raise TimeoutError
        except TimeoutError:
            raise ModelRetry("Timed out after 5 seconds.") from None
    except ModelRetry as error:
        return error


SAYS: list[tuple[Exception, Health]] = [
    (OSError(), "ill"),
    (ValueError(), "ill"),
    (TimeoutError(), "ill"),
    (ApplicationError("later"), "ill"),
    (timed_out(), "ill"),
    (ModelRetry("not so"), "well"),
    (ToolFailed("no such customer"), "well"),
    (ApplicationError("declined", non_retryable=True), "well"),
    (ApprovalRequired(), "unclear"),
    (CallDeferred(), "unclear"),
    (UserError("wrong"), "unclear"),
    (ToolContractViolation("wrong"), "unclear"),
    (ServerUnreachable("gone"), "ill"),
    (AnswerLost("lost"), "ill"),
]


@pytest.mark.parametrize(("error", "health"), SAYS, ids=lambda value: str(value)[:30])
def test_p_12_what_an_exception_says(error: Exception, health: Health) -> None:
    assert health_of(error) == health
