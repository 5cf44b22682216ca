"""History processors: what is sent, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from tests.equality_cases.base import Case, Ran, call, calls, case, simple
from tests.equality_cases.capabilities import double


@case
def history_processor_that_shortens_what_is_sent() -> Case:
    def recent(messages: list[ModelMessage]) -> list[ModelMessage]:
        return [messages[0], *messages[-2:]] if len(messages) > 3 else messages

    answered: list[Any] = []

    def turn(messages: Sequence[ModelMessage], info: Any) -> Any:
        asked = len([part for message in messages for part in message.parts if isinstance(part, ToolCallPart)])
        answered.append(asked)
        return calls(call("double", {"n": asked}, id=f"id{len(answered)}")) if len(answered) < 4 else calls("done")

    def differs(plainly: Ran, durably: Ran) -> None:
        """A processor's rewrite is persisted in process; here the transcript stays whole."""
        assert durably.requests[:2] == plainly.requests[:2]
        assert (durably.output, durably.error) == ("done", None)
        assert [len(request["messages"]) for request in durably.requests] == [1, 3, 3, 3]
        assert len(durably.messages) == 8

    return simple(*[turn] * 8, tools=[double], capabilities=[ProcessHistory(recent)], differs=differs)


@case
def history_processor_that_adds_to_each_request() -> Case:
    async def remind(ctx: RunContext[Any], messages: list[ModelMessage]) -> list[ModelMessage]:
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        if any(isinstance(part, SystemPromptPart) for part in last.parts):
            return messages
        return [*messages[:-1], replace(last, parts=[*last.parts, SystemPromptPart(f"Step {ctx.run_step}.")])]

    return simple({"double": {"n": 1}}, "done", tools=[double], capabilities=[ProcessHistory(remind)])


def numbered(requests: list[list[ModelMessage]]) -> Any:
    """Four calls, one a step, and an answer, whatever is left of the conversation."""

    def turn(messages: Sequence[ModelMessage], info: Any) -> Any:
        requests.append(list(messages))
        n = len(requests)
        return calls(call("double", {"n": n}, id=f"id{n}")) if n < 5 else calls("done")

    return turn


def whole(plainly: Ran, durably: Ran) -> None:
    """In process the transcript is what the processor left; here all of it is there, each call with its answer."""
    assert (durably.output, durably.error) == (plainly.output, plainly.error) == ("done", None)
    assert len(plainly.messages) < len(durably.messages) == 10
    assert [len(request["messages"]) for request in durably.requests] == [1, 3, 1, 1, 1]
    kinds = [[part["part_kind"] for part in message["parts"]] for message in durably.messages]
    assert kinds == [["user-prompt"], *[["tool-call"], ["tool-return"]] * 4, ["text"]]


@case
def history_processor_that_folds_all_into_one_message() -> Case:
    def folded(messages: list[ModelMessage]) -> list[ModelMessage]:
        if len(messages) <= 3:
            return messages
        answers = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        text = " ".join(part.model_response_str() for part in answers)
        return [ModelRequest(parts=[UserPromptPart(f"So far: {text}")])]

    turn = numbered([])
    return simple(*[turn] * 8, tools=[double], capabilities=[ProcessHistory(folded)], differs=whole)


@case
def history_processor_that_takes_the_answers_out_of_the_newest_request() -> Case:
    def told(messages: list[ModelMessage]) -> list[ModelMessage]:
        last = messages[-1]
        if len(messages) <= 3 or isinstance(last, ModelResponse):
            return messages
        return [ModelRequest(parts=[UserPromptPart("Go on.")])]

    turn = numbered([])
    return simple(*[turn] * 8, tools=[double], capabilities=[ProcessHistory(told)], differs=whole)
