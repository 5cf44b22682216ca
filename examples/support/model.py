"""A model that needs no key and no network: it reads the conversation and follows `rules.py`.

Set `PERDURE_SUPPORT_DELAY` (seconds) to make each request take as long as a real model's.
"""

import asyncio
import os
from collections.abc import AsyncIterator

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from .answer import Answer
from .conversation import Turn, read
from .rules import Call, Step, next_step

CHUNK = 12
"""Characters per streamed piece."""


async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    await asyncio.sleep(_delay())
    return _decide(messages, info)


async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    pieces = _pieces(_decide(messages, info))
    for piece in pieces:
        await asyncio.sleep(_delay() / len(pieces))
        yield piece


def _decide(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    turn = read(messages)
    match next_step(turn):
        case Step(say, calls):
            return ModelResponse(parts=[TextPart(say), *_call_parts(turn, calls)])
        case Answer() as answer:
            final = Call(info.output_tools[0].name, answer.model_dump(mode="json"))
            return ModelResponse(parts=_call_parts(turn, [final]))


def _call_parts(turn: Turn, calls: list[Call]) -> list[ToolCallPart]:
    first = turn.calls_so_far + 1
    return [ToolCallPart(call.tool, call.args, f"call-{number}") for number, call in enumerate(calls, first)]


def _pieces(response: ModelResponse) -> list[str | DeltaToolCalls]:
    pieces: list[str | DeltaToolCalls] = []
    for index, part in enumerate(response.parts):
        if isinstance(part, TextPart):
            pieces += _cut(part.content)
        elif isinstance(part, ToolCallPart):
            pieces.append({index: DeltaToolCall(part.tool_name, tool_call_id=part.tool_call_id)})
            pieces += [{index: DeltaToolCall(json_args=chunk)} for chunk in _cut(part.args_as_json_str())]
    return pieces


def _cut(text: str) -> list[str]:
    return [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)]


def _delay() -> float:
    return float(os.environ.get("PERDURE_SUPPORT_DELAY", "0"))


model = FunctionModel(respond, stream_function=stream, model_name="offline-support")
