"""What models answer: empty, cut off, filtered, thinking, native parts, odd ids: S4-15 to S4-29."""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import (
    FilePart,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.usage import RequestUsage

from tests.equality_cases.base import Case, call, calls, case, simple
from tests.equality_cases.tools import PIXEL


def double(n: int) -> int:
    """Twice n."""
    return 2 * n


def response(*parts: Any, **fields: Any) -> ModelResponse:
    return ModelResponse(parts=list(parts), **fields)


@case
def response_empty_then_text() -> Case:
    return simple(response(), "done")


@case
def response_empty_after_a_tool() -> Case:
    return simple({"double": {"n": 1}}, response(), "done", tools=[double])


@case
def response_empty_text() -> Case:
    return simple(response(TextPart("")), "done", tools=[double])


@case
def response_empty_until_the_cap() -> Case:
    return simple(response(), response(), response(), "never", retries=1)


@case
def response_only_thinking() -> Case:
    return simple(response(ThinkingPart("hm", id="t1", signature="sig", provider_name="function")), "done")


@case
def response_thinking_beside_a_call() -> Case:
    thinking = ThinkingPart("hm", signature="sig", provider_name="function", provider_details={"a": [1]})
    return simple(calls(thinking, "I will", call("double", {"n": 2})), "done", tools=[double])


@case
def response_native_tool_parts() -> Case:
    parts = [
        NativeToolCallPart("web_search", {"query": "x"}, tool_call_id="n1", provider_name="function"),
        NativeToolReturnPart("web_search", {"hits": [1]}, tool_call_id="n1", provider_name="function"),
    ]
    return simple(
        response(*parts, ToolCallPart("double", {"n": 2}, tool_call_id="x")),
        response(*parts, TextPart("done")),
        tools=[double],
    )


@case
def response_file_part() -> Case:
    from pydantic_ai.messages import BinaryImage

    return simple(response(FilePart(BinaryImage(data=PIXEL.data, media_type="image/png")), TextPart("here")))


@case
def response_image_as_output() -> Case:
    from pydantic_ai import BinaryImage
    from pydantic_ai.profiles import ModelProfile

    image = FilePart(BinaryImage(data=PIXEL.data, media_type="image/png"))
    return simple(
        "no image", response(image), output_type=BinaryImage, profile=ModelProfile(supports_image_output=True)
    )


@case
def response_cut_off_text() -> Case:
    return simple(response(TextPart("half of"), finish_reason="length"))


@case
def response_cut_off_before_anything() -> Case:
    return simple(response(finish_reason="length"), "never")


@case
def response_cut_off_in_thinking() -> Case:
    return simple(response(ThinkingPart("hm"), finish_reason="length"), "never", model_settings={"max_tokens": 5})


@case
def response_cut_off_in_a_call() -> Case:
    cut = response(ToolCallPart("double", '{"n": ', tool_call_id="x"), finish_reason="length")
    return simple(cut, cut, "never", tools=[double], model_settings={"max_tokens": 9})


@case
def response_cut_off_output_call() -> Case:
    cut = response(ToolCallPart("final_result", '{"response": ', tool_call_id="x"), finish_reason="length")
    return simple(cut, cut, "never", output_type=list[int])


@case
def response_content_filter_empty() -> Case:
    return simple(response(finish_reason="content_filter"), "never")


@case
def response_content_filter_with_text() -> Case:
    return simple(response(TextPart("I can't"), finish_reason="content_filter"), "never")


@case
def response_usage_provider_fields_and_details() -> Case:
    usage = RequestUsage(
        input_tokens=7, output_tokens=3, cache_read_tokens=2, input_audio_tokens=1, details={"reasoning": 4}
    )
    fields: dict[str, Any] = {
        "provider_name": "p",
        "provider_response_id": "r1",
        "provider_details": {"x": 1},
        "metadata": {"m": 1},
    }
    return simple(
        response(
            ToolCallPart("double", {"n": 1}, tool_call_id="x", provider_details={"s": "t"}), usage=usage, **fields
        ),
        response(TextPart("done", id="t", provider_name="p"), usage=usage, finish_reason="stop", **fields),
        tools=[double],
    )


@case
def response_same_id_in_two_steps() -> Case:
    return simple(*[calls(call("double", {"n": n}, id="same")) for n in (1, 2)], "done", tools=[double])


@case
def response_empty_id() -> Case:
    return simple(*[calls(call("double", {"n": n}, id="")) for n in (1, 2)], "done", tools=[double])


@case
def response_same_id_twice_in_one_step_is_mended() -> Case:
    from tests.equality_cases.base import Ran

    def differs(plainly: Ran, durably: Ran) -> None:
        assert plainly.error is not None
        assert plainly.error[0] == "UnexpectedModelBehavior"
        assert (durably.error, durably.output) == (None, "done")
        answers = durably.messages[2]["parts"]
        assert [(part["tool_call_id"], part["content"][0]) for part in answers] == [("#1.0", "2"), ("#1.1", "4")]

    turn = calls(call("double", {"n": 1}, id="same"), call("double", {"n": 2}, id="same"))
    return simple(turn, "done", tools=[double], differs=differs)


@case
def response_text_beside_calls() -> Case:
    return simple(
        calls("Let me see.", call("double", {"n": 1}), "And", call("double", {"n": 2})), "done", tools=[double]
    )


@case
def response_many_parallel_calls() -> Case:
    return simple(calls(*(call("double", {"n": n}) for n in range(20))), "done", tools=[double])
