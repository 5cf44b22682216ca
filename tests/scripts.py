"""A scripted model: each turn says what the model answers. An exhausted script is an error, not an empty answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast

from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

Turn = str | dict[str, Any] | ModelResponse | list[ModelResponsePart] | Callable[[list[ModelMessage], AgentInfo], Any]
"""Text; a dict of tool name → arguments (one call each); parts; a whole response; or a function that makes one."""


class Script:
    """What the model was asked, and what it answers next. Turns are chosen by the number of responses so far, so that a
    repeated request gets the same answer and one script can serve many runs."""

    def __init__(self, *turns: Turn) -> None:
        self.turns = turns
        self.requests: list[list[ModelMessage]] = []
        self.infos: list[AgentInfo] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.requests.append(list(messages))
        self.infos.append(info)
        done = sum(isinstance(message, ModelResponse) for message in messages)
        if done >= len(self.turns):
            raise AssertionError(f"the script has {len(self.turns)} turns, the model was asked for turn {done + 1}")
        return answer(self.turns[done], messages, info, done)

    @property
    def model(self) -> FunctionModel:
        """The script as a model that doesn't stream."""
        return FunctionModel(self._function)

    @property
    def streaming(self) -> FunctionModel:
        """The script as a model that streams text, in words. Only for scripts of text."""
        return FunctionModel(self._function, stream_function=self._stream)

    async def _function(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return self(messages, info)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        for part in self(messages, info).parts:
            assert isinstance(part, TextPart)
            for word in part.content.split(" "):
                yield f"{word} "


def answer(turn: Turn, messages: list[ModelMessage], info: AgentInfo, done: int) -> ModelResponse:
    """A turn as a response. Ids of calls are `c<turn>.<index>`, so that two runs of a script are equal."""
    if isinstance(turn, Callable):
        turn = cast("Turn", turn(messages, info))
    if isinstance(turn, ModelResponse):
        return turn
    if isinstance(turn, str):
        return ModelResponse(parts=[TextPart(turn)])
    if isinstance(turn, dict):
        calls = cast("dict[str, Any]", turn)
        return ModelResponse(parts=numbered([ToolCallPart(name, args) for name, args in calls.items()], done))
    return ModelResponse(parts=numbered(cast("list[ModelResponsePart]", turn), done))


def numbered(parts: Sequence[ModelResponsePart], turn: int) -> list[ModelResponsePart]:
    """Parts with ids for the calls that have a generated one."""
    from dataclasses import replace

    return [
        replace(part, tool_call_id=f"c{turn}.{index}")
        if isinstance(part, ToolCallPart) and part.tool_call_id.startswith("pyd_ai_")
        else part
        for index, part in enumerate(parts)
    ]
