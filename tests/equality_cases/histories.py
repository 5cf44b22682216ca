"""History processors: what is sent, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, ToolCallPart

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
