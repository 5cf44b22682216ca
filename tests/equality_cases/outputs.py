"""Structured output: tool, native and prompted modes, unions, functions, validators."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from pydantic import BaseModel, Field, ValidationInfo, field_validator
from pydantic_ai import ModelRetry, NativeOutput, PromptedOutput, RunContext, TextOutput, ToolOutput

from tests.equality_cases.base import NATIVE, Case, call, calls, case, simple


class Answer(BaseModel):
    """An answer."""

    text: str
    score: int = Field(ge=0, alias="points")
    price: Decimal = Decimal("1.50")


@dataclass
class Refusal:
    """Why there is no answer."""

    reason: str


GOOD = {"text": "yes", "points": 3}
BAD = {"text": "yes", "points": -1}


def final(args: Any, name: str = "final_result") -> dict[str, Any]:
    return {name: args}


@case
def output_model_by_tool_with_a_correction() -> Case:
    return simple(final(BAD), final(GOOD), output_type=Answer)


@case
def output_model_until_the_cap() -> Case:
    return simple(final(BAD), final(BAD), final(BAD), "never", output_type=Answer, retries=1)


@case
def output_cap_of_its_own() -> Case:
    return simple(final(BAD), final(BAD), final(GOOD), output_type=ToolOutput(Answer, max_retries=2))


@case
def output_named_and_described_tool() -> Case:
    return simple(final(GOOD, "reply"), output_type=ToolOutput(Answer, name="reply", description="Reply", strict=True))


@case
def output_union_of_two() -> Case:
    return simple(final({"reason": "no"}, "final_result_Refusal"), output_type=[Answer, Refusal])


@case
def output_union_by_operator() -> Case:
    return simple(final(GOOD, "final_result_Answer"), output_type=Answer | Refusal)


@case
def output_text_or_model_is_text() -> Case:
    return simple("Just text.", output_type=[str, Answer])


@case
def output_text_or_model_is_model() -> Case:
    return simple(final(GOOD), output_type=[str, Answer])


@case
def output_list_of_models() -> Case:
    return simple(final({"response": [GOOD, BAD]}), final({"response": [GOOD]}), output_type=list[Answer])


@case
def output_int() -> Case:
    return simple(final({"response": "x"}), final({"response": 7}), output_type=int)


@case
def output_bool() -> Case:
    return simple(final({"response": False}), output_type=bool)


@case
def output_list_of_ints() -> Case:
    return simple(final({"response": []}), output_type=list[int])


@case
def output_model_or_none_is_none() -> Case:
    return simple(
        final({}, "final_result_NoneType"),
        final({"response": None}, "final_result_NoneType"),
        output_type=[Answer, type(None)],
    )


@case
def output_model_or_none_is_model() -> Case:
    return simple(final(GOOD, "final_result_Answer"), output_type=[Answer, type(None)])


@case
def output_text_instead_of_a_tool_call() -> Case:
    return simple("Let me think.", final(GOOD), output_type=Answer)


@case
def output_text_until_the_cap() -> Case:
    return simple("a", "b", "never", output_type=Answer)


@case
def output_native() -> Case:
    turns = ['{"text": "yes", "points": -1}', '{"text": "yes", "points": 3}']
    return simple(*turns, output_type=NativeOutput(Answer, name="answer", strict=True), profile=NATIVE)


@case
def output_native_union() -> Case:
    text = '{"result": {"kind": "Refusal", "data": {"reason": "no"}}}'
    return simple(text, output_type=NativeOutput([Answer, Refusal]), profile=NATIVE)


@case
def output_prompted() -> Case:
    return simple(
        "no json", '{"text": "yes", "points": 3}', output_type=PromptedOutput(Answer), instructions="Be nice."
    )


@case
def output_prompted_int_with_template() -> Case:
    return simple('{"response": 4}', output_type=PromptedOutput(int, template="Obey: {schema}"))


@case
def output_auto_mode_of_a_native_model() -> Case:
    profile = {**NATIVE, "default_structured_output_mode": "native"}
    return simple('{"text": "yes", "points": 3}', output_type=Answer, profile=profile)


@case
def output_function_sync_and_async() -> Case:
    async def double(ctx: RunContext[Any], n: int) -> int:
        """Twice."""
        if n < 0:
            raise ModelRetry(f"negative, {ctx.retry} of {ctx.max_retries}")
        return 2 * n

    def shout(text: str) -> str:
        return text.upper()

    turns = [final({"n": -1}, "final_result_double"), final({"n": 4}, "final_result_double")]
    return simple(*turns, output_type=[double, shout], retries=2)


@case
def output_text_function() -> Case:
    def words(text: str) -> list[str]:
        if len(text) < 3:
            raise ModelRetry("longer")
        return text.split()

    return simple("a", "a b c", output_type=TextOutput(words))


@case
def output_validators_see_context() -> Case:
    saw: list[Any] = []
    case = simple(final(GOOD), final({"text": "no", "points": 1}), output_type=Answer, saw=saw, retries=3)

    @case.agent.output_validator
    async def check(ctx: RunContext[Any], answer: Answer) -> Answer:
        saw.append(
            (answer.text, ctx.retry, ctx.max_retries, ctx.run_step, ctx.tool_name, ctx.tool_call_id, ctx.partial_output)
        )
        if answer.text == "yes":
            raise ModelRetry("not yes")
        return answer.model_copy(update={"text": "checked"})

    return case


@case
def output_validator_of_text_until_the_cap() -> Case:
    case = simple("a", "b", "c", "never", retries=2)

    @case.agent.output_validator
    def check(text: str) -> str:
        raise ModelRetry(f"not {text}")

    return case


@case
def output_two_calls_in_one_response() -> Case:
    return simple(
        calls(call("final_result", BAD), call("final_result", GOOD), call("final_result", GOOD)), output_type=Answer
    )


@case
def output_two_bad_calls_in_one_response() -> Case:
    return simple(
        calls(call("final_result", BAD), call("final_result", BAD)), final(GOOD), output_type=Answer, retries=3
    )


@case
def output_malformed_json() -> Case:
    return simple(calls(call("final_result", '{"text": ')), final(GOOD), output_type=Answer)


class Checked(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def below(cls, value: int, info: ValidationInfo) -> int:
        most = cast("dict[str, int]", info.context)["most"]
        assert value < most, f"less than {most}"
        return value


@case
def output_validation_context() -> Case:
    def use(checked: Checked, other: int) -> int:
        return checked.n + other

    turns = [{"use": {"checked": {"n": 9}, "other": 1}}, {"use": {"checked": {"n": 4}, "other": 1}}, final({"n": 3})]
    return simple(*turns, output_type=Checked, validation_context={"most": 5}, tools=[use])
