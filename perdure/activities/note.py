"""What a compaction covers, and the note that stands for it. Pure.

The note's request is Pydantic AI's own form of a summary that no provider made: a `CompactionPart` in a request. At
such a part Pydantic AI forgets which tools were found and which capabilities were loaded, as it no longer sees where;
so the note says it again, beside the standing system prompts and the user prompt of the turn that goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from pydantic_ai.messages import (
    CapabilityLoadDeltaPart,
    CompactionPart,
    LoadCapabilityCallPart,
    LoadCapabilityReturnPart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    NativeToolSearchReturnPart,
    SystemPromptPart,
    ToolAvailabilityDeltaPart,
    ToolSearchReturnPart,
)

from perdure.activities.carry import dump_parts
from perdure.activities.parsing import message_bytes
from perdure.activities.transcript import Conversation
from perdure.contracts import Json


@dataclass(frozen=True)
class Cover:
    """Where a conversation is cut."""

    messages: tuple[ModelMessage, ...]
    """What the note will stand for."""
    keep: int
    """How many messages after them stay, from a response on."""
    upto: int
    """How many entries are needed no more."""


def cover(conversation: Conversation, keep_bytes: int) -> Cover | None:
    """Everything but the last messages of at most `keep_bytes`; the last response stays in any case.

    `None` where no response would be covered. What stays begins with a response: each answer stays with its call.
    """
    messages, used, start = conversation.messages, 1, len(conversation.messages)
    for index in range(len(messages) - 1, -1, -1):
        used += message_bytes([messages[index]]) - 1  # of both brackets, one is the comma
        if used > keep_bytes and start < len(messages):
            break
        if isinstance(messages[index], ModelResponse):
            start = index
    covered = messages[:start]
    if start == len(messages) or not any(isinstance(message, ModelResponse) for message in covered):
        return None
    return Cover(messages=covered, keep=len(messages) - start, upto=conversation.places[start])


def note(conversation: Conversation, covered: Cover, summary: str, model: str) -> Json:
    """The entry, but for `at` and `step`, which are the workflow's. Raises `NotCarried`."""
    parts = dump_parts(_parts(covered.messages, summary))
    if conversation.asked is not None and conversation.asked_at < covered.upto:
        parts.append(conversation.asked)
    entry: Json = {
        "kind": "note",
        "upto": covered.upto,
        "keep": covered.keep,
        "parts": parts,
        "start": conversation.start,
        "revealed": sorted(name for name, at in conversation.revealed.items() if at <= covered.upto),
        "model": model,
    }
    established = conversation.established
    return entry if established is None else entry | {"established": list(established)}


def standing(messages: Sequence[ModelMessage]) -> list[SystemPromptPart]:
    """The system prompts that a conversation opens with. Pydantic AI makes them only once."""
    if not messages or not isinstance(messages[0], ModelRequest):
        return []
    prompts = takewhile(lambda part: isinstance(part, SystemPromptPart), messages[0].parts)
    return [part for part in prompts if isinstance(part, SystemPromptPart)]


def _parts(messages: Sequence[ModelMessage], summary: str) -> list[ModelRequestPart]:
    parts: list[ModelRequestPart] = [*standing(messages), CompactionPart(content=summary)]
    if loaded := list(dict.fromkeys(_loaded(messages))):
        parts.append(CapabilityLoadDeltaPart(loaded=loaded))
    if found := list(dict.fromkeys(name for part in _every(messages) for name in _found(part))):
        parts.append(ToolAvailabilityDeltaPart(tools_added=found))
    return parts


def _every(messages: Sequence[ModelMessage]) -> Iterator[ModelRequestPart | ModelResponsePart]:
    return (part for message in messages for part in message.parts)


def _found(part: ModelRequestPart | ModelResponsePart) -> list[str]:
    """The deferred tools that a part shows to the model."""
    match part:
        case ToolAvailabilityDeltaPart():
            return part.tools_added
        case ToolSearchReturnPart() | NativeToolSearchReturnPart():
            return [found["name"] for found in part.discovered_tools]
        case _:
            return []


def _loaded(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """The capabilities that were loaded, by the model's call or by code."""
    calls: dict[str, str] = {}
    for part in _every(messages):
        match part:
            case CapabilityLoadDeltaPart():
                yield from part.loaded
            case LoadCapabilityCallPart() if part.capability_id is not None:
                calls[part.tool_call_id] = part.capability_id
            case LoadCapabilityReturnPart() if part.tool_call_id in calls:
                yield calls[part.tool_call_id]
            case _:
                pass
