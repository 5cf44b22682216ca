"""End strategies: function calls beside output calls and beside text: S0-32, S0-33."""

from __future__ import annotations

from itertools import permutations
from typing import Any, Literal

from pydantic import BaseModel
from pydantic_ai import ModelRetry, NativeOutput, RunContext, Tool, ToolFailed

from tests.equality_cases.base import CASES, NATIVE, Case, Ran, call, calls, case, simple

Strategy = Literal["early", "graceful", "exhaustive"]
STRATEGIES: tuple[Strategy, ...] = ("early", "graceful", "exhaustive")


RETRY_FIRST = "Output not used as the final result - addressing tool retries from this round first."


class Answer(BaseModel):
    n: int


GOOD, BAD = call("final_result", {"n": 1}), call("final_result", {"n": "x"})
BESIDE = {
    "good": [call("work", {"how": "good"})],
    "retry": [call("work", {"how": "retry"})],
    "failed": [call("work", {"how": "failed"})],
    "bad": [call("work", {"what": 1})],
    "unknown": [call("nothing", {})],
    "two": [call("work", {"how": "good"}), call("other", {"n": 2})],
    "retry_two": [call("work", {"how": "retry"}), call("other", {"n": 2})],
}


def beside(strategy: Strategy, turn: list[Any], **options: Any) -> Case:
    saw: list[Any] = []

    def work(ctx: RunContext[Any], how: str) -> str:
        saw.append(("work", how, ctx.retry))
        if how == "retry":
            raise ModelRetry("again")
        if how == "failed":
            raise ToolFailed("broken")
        return how

    def other(n: int) -> int:
        return n

    last = calls(call("final_result", {"n": 9}))
    tools = [Tool(work, max_retries=3), other]
    return simple(calls(*turn), last, saw=saw, tools=tools, output_type=Answer, end_strategy=strategy, **options)


def not_even_validated(plainly: Ran, durably: Ran) -> None:
    """Beside a call that has to be mended the output call isn't looked at, so it isn't corrected either: design §3."""
    theirs, ours = plainly.messages[2]["parts"], durably.messages[2]["parts"]
    at = next(index for index, part in enumerate(theirs) if part["tool_name"] == "final_result")
    assert theirs[at]["retry"]["cause"] == "validation_error"
    assert (ours[at]["outcome"], ours[at]["content"][0]) == ("success", RETRY_FIRST)
    assert [*ours[:at], *ours[at + 1 :]] == [*theirs[:at], *theirs[at + 1 :]]
    assert (durably.saw, durably.output, durably.error) == (plainly.saw, plainly.output, None)


def register(name: str, strategy: Strategy, turn: list[Any]) -> None:
    mends = any(part is not BAD and part.args in ({"how": "retry"}, {"what": 1}) for part in turn if part != "text")
    options: dict[str, Any] = {"differs": not_even_validated} if strategy != "early" and BAD in turn and mends else {}
    CASES[name] = lambda: beside(strategy, list(turn), retries=3, **options)


for strategy in STRATEGIES:
    for kind, others in BESIDE.items():
        register(f"s0_33_{strategy}_{kind}_then_output", strategy, [*others, GOOD])
        register(f"s0_33_{strategy}_output_then_{kind}", strategy, [GOOD, *others])
        register(f"s0_33_{strategy}_{kind}_then_bad_output", strategy, [*others, BAD])
        register(f"s0_33_{strategy}_bad_output_then_{kind}", strategy, [BAD, *others])
    for order in permutations([("good", *BESIDE["good"]), ("output", GOOD), ("bad", BAD)]):
        name = "_".join(kind for kind, _ in order)
        register(f"s0_33_{strategy}_order_{name}", strategy, [part for _, part in order])
    register(
        f"s0_33_{strategy}_two_outputs_around_a_call", strategy, [GOOD, *BESIDE["good"], call("final_result", {"n": 2})]
    )
    register(f"s0_33_{strategy}_text_beside_output_and_call", strategy, ["text", *BESIDE["good"], GOOD])


def text_beside_calls(strategy: Strategy, text: str, turn: list[Any]) -> Case:
    saw: list[Any] = []

    def work(how: str) -> str:
        saw.append(how)
        return how

    turns = [calls(text, *turn), '{"n": 9}']
    return simple(
        *turns, saw=saw, tools=[work], output_type=NativeOutput(Answer), profile=NATIVE, end_strategy=strategy
    )


for strategy in STRATEGIES:
    for kind, text in {"good": '{"n": 1}', "bad": '{"n": "x"}'}.items():
        for what in ("good", "bad", "unknown"):
            CASES[f"s0_32_{strategy}_{kind}_native_text_beside_{what}_call"] = (
                lambda strategy=strategy, text=text, what=what: text_beside_calls(strategy, text, BESIDE[what])
            )


def never_run_beside_a_retry(strategy: Strategy) -> Case:
    """The output function isn't run at all beside a call that has to be mended: design §3."""
    saw: list[Any] = []

    def work() -> str:
        raise ModelRetry("again")

    def finish(n: int) -> int:
        saw.append(n)
        return n

    def differs(plainly: Ran, durably: Ran) -> None:
        assert (plainly.saw, durably.saw) == ([1, 2], [2])
        assert (durably.output, durably.error) == (plainly.output, None)
        assert durably.messages == plainly.messages
        assert durably.requests == plainly.requests

    turn = calls(call("final_result", {"n": 1}), call("work"))
    last = calls(call("final_result", {"n": 2}))
    return simple(turn, last, saw=saw, tools=[work], output_type=finish, end_strategy=strategy, differs=differs)


@case
def s0_33_graceful_output_function_beside_a_retry() -> Case:
    return never_run_beside_a_retry("graceful")


@case
def s0_33_exhaustive_output_function_beside_a_retry() -> Case:
    return never_run_beside_a_retry("exhaustive")
