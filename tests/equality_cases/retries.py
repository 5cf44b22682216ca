"""Retries, caps and argument errors: S0-08, S0-31, S0-35, S4-25."""

from __future__ import annotations

from typing import Any

from pydantic_ai import FunctionToolset, ModelRetry, RunContext, Tool, ToolFailed

from tests.equality_cases.base import Case, Ran, call, calls, case, simple


def refuse(ctx: RunContext[Any], n: int) -> str:
    """Always asks for a retry."""
    raise ModelRetry(f"no {n}, {ctx.retry} of {ctx.max_retries}")


def fine(n: int) -> str:
    """Never fails."""
    return f"fine {n}"


def siblings_end(plainly: Ran, durably: Ran) -> None:
    """A call that ends the run: in process its sibling is given up where it stands, here it ends, and counts."""
    assert (durably.error, durably.requests, durably.messages) == (plainly.error, plainly.requests, plainly.messages)
    steps = len(durably.requests)
    assert durably.usage["tool_calls"] == steps
    assert plainly.usage["tool_calls"] in (steps - 1, steps)


@case
def s0_31_cap_of_the_tool() -> Case:
    return simple(*[{"refuse": {"n": n}} for n in range(4)], "never", tools=[Tool(refuse, max_retries=2)])


@case
def s0_31_cap_of_the_toolset() -> Case:
    tools = FunctionToolset[Any]([refuse], id="tools", max_retries=3)
    return simple(*[{"refuse": {"n": n}} for n in range(5)], "never", toolsets=[tools])


@case
def s0_31_cap_of_the_agent() -> Case:
    return simple(*[{"refuse": {"n": n}} for n in range(4)], "never", tools=[refuse], retries=2)


@case
def s0_31_cap_of_zero() -> Case:
    return simple({"refuse": {"n": 1}}, "never", tools=[Tool(refuse, max_retries=0)])


@case
def s0_31_cap_reached_by_bad_arguments() -> Case:
    return simple({"fine": {"n": "x"}}, {"fine": {"n": "y"}}, "never", tools=[fine], retries=1)


@case
def s0_31_two_failures_in_one_step_cost_one() -> Case:
    twice = calls(call("refuse", {"n": 1}), call("refuse", {"n": 2}))
    return simple(twice, twice, "done", tools=[Tool(refuse, max_retries=2)])


@case
def s0_31_success_resets_the_count() -> Case:
    def odd(ctx: RunContext[Any], n: int) -> str:
        if n % 2:
            raise ModelRetry(f"odd, {ctx.retry}")
        return "even"

    return simple(*[{"odd": {"n": n}} for n in (1, 2, 3, 4)], "done", tools=[odd])


@case
def s0_31_one_of_two_parallel_calls_of_a_tool_fails() -> Case:
    def odd(ctx: RunContext[Any], n: int) -> str:
        if n % 2:
            raise ModelRetry(f"odd, {ctx.retry}")
        return f"even, {ctx.retry}"

    turn = calls(call("odd", {"n": 1}), call("odd", {"n": 2}))
    return simple(turn, turn, turn, "never", tools=[Tool(odd, max_retries=2)], differs=siblings_end)


@case
def s0_31_bad_arguments_beside_a_good_call_of_the_same_tool() -> Case:
    turn = calls(call("fine", {"n": "x"}), call("fine", {"n": 2}), call("fine", "not json"))
    return simple(turn, turn, "done", tools=[Tool(fine, max_retries=3)])


@case
def s0_31_cap_reached_beside_a_good_call() -> Case:
    turn = calls(call("fine", {"n": 1}), call("refuse", {"n": 2}))
    return simple(turn, turn, "never", tools=[fine, Tool(refuse, max_retries=1)], differs=siblings_end)


@case
def s4_25_unknown_tool() -> Case:
    return simple({"nothing": {}}, {"fine": {"n": 1}}, "done", tools=[fine])


@case
def s4_25_unknown_tool_until_the_cap() -> Case:
    return simple({"nothing": {}}, {"nothing": {}}, {"nothing": {}}, "never", tools=[fine], retries=1)


@case
def s4_25_unknown_tool_beside_a_known_one() -> Case:
    return simple(calls(call("nothing"), call("fine", {"n": 1})), "done", tools=[fine])


@case
def s4_25_malformed_arguments() -> Case:
    return simple(calls(call("fine", '{"n": 1')), calls(call("fine", '{"n": 1}')), "done", tools=[fine])


@case
def s4_25_arguments_that_are_no_object() -> Case:
    turns = [calls(call("fine", args)) for args in ("[1]", "1", '"n"', "null")]
    return simple(*turns, {"fine": {"n": 1}}, "done", tools=[Tool(fine, max_retries=9)])


@case
def s4_25_empty_arguments() -> Case:
    def nothing() -> str:
        return "nothing"

    turns = [calls(call("nothing", "")), calls(call("nothing", None)), calls(call("nothing", "{}"))]
    return simple(*turns, "done", tools=[nothing])


@case
def s0_35_args_validator() -> Case:
    saw: list[Any] = []

    async def check(ctx: RunContext[Any], n: int) -> None:
        if n == 1:
            raise ModelRetry(f"not {n}, {ctx.retry}")
        if n == 2:
            raise ToolFailed("never two")

    def keep(ctx: RunContext[Any], n: int) -> int:
        saw.append((n, ctx.retry))
        return n

    turns = [{"keep": {"n": n}} for n in (0, 1, 2, 3)]
    return simple(*turns, "done", saw=saw, tools=[Tool(keep, args_validator=check, max_retries=2)])


@case
def s0_35_args_validator_until_the_cap() -> Case:
    def check(ctx: RunContext[Any], n: int) -> None:
        raise ModelRetry("never")

    return simple({"fine": {"n": 1}}, {"fine": {"n": 1}}, "never", tools=[Tool(fine, args_validator=check)])


@case
def s0_34_failed_beside_returned_and_retried() -> Case:
    def broken() -> str:
        raise ToolFailed("broken")

    turn = calls(call("broken"), call("fine", {"n": 1}), call("refuse", {"n": 2}))
    return simple(turn, "done", tools=[broken, fine, refuse])


@case
def s0_32_sequential_tool_between_others() -> Case:
    saw: list[Any] = []

    def alone(n: int) -> int:
        saw.append(n)
        return n

    def together(n: int) -> int:
        return n

    turn = calls(
        call("together", {"n": 1}), call("alone", {"n": 2}), call("together", {"n": 3}), call("alone", {"n": 4})
    )
    return simple(turn, "done", saw=saw, tools=[Tool(alone, sequential=True), together])


@case
def s0_08_exception_in_a_tool_is_told_instead_of_ending_the_run() -> Case:
    def explode() -> str:
        raise KeyError("secret")

    def differs(plainly: Ran, durably: Ran) -> None:
        assert plainly.error == ("KeyError", "'secret'")
        assert (durably.error, durably.output) == (None, "done")
        answer = durably.requests[1]["messages"][2]["parts"][0]
        assert (answer["outcome"], answer["content"][0]) == ("failed", '{"error":"The tool failed with KeyError."}')

    return simple({"explode": {}}, "done", tools=[explode], differs=differs)
