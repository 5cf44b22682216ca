"""A conversation as text, for a model that summarises it, in pieces of a bounded size. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from pydantic_ai.messages import (
    BaseToolCallPart,
    BaseToolReturnPart,
    BinaryContent,
    CompactionPart,
    FilePart,
    ModelMessage,
    ModelRequestPart,
    ModelResponsePart,
    RetryFeedbackPart,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)

from perdure.activities.note import standing
from perdure.contracts import cut

MAX_ARGS = 2_000
MAX_RESULT = 4_000
"""Characters of the arguments and of the result of one call: a summary needs no more."""


def pieces(messages: Sequence[ModelMessage], size: int) -> list[str]:
    """The conversation in pieces of at most `size` bytes, cut between parts where that is possible."""
    found: list[str] = []
    used = size
    for line in _lines(messages):
        for row in _rows(line, size):
            room = len(row.encode()) + 1
            if used + room > size:
                found.append("")
                used = 0
            found[-1] += row + "\n"
            used += room
    return found


def _rows(line: str, size: int) -> Iterator[str]:
    """A line, in rows that fit into a piece."""
    whole, start = line.encode("utf-8", "replace"), 0
    while start < len(whole):
        end = start + size - 1
        while end < len(whole) and whole[end] & 0xC0 == 0x80:  # not in the middle of a character
            end -= 1
        yield whole[start:end].decode()
        start = end


def _lines(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """One line for each part; without the standing system prompts, which stay, and without thoughts."""
    known = {id(part) for part in standing(messages)}
    for message in messages:
        for part in message.parts:
            if id(part) not in known and (line := _line(part)):
                yield line


def _line(part: ModelRequestPart | ModelResponsePart) -> str:
    match part:
        case UserPromptPart():
            return f"User: {_content(part.content)}"
        case SystemPromptPart():
            return f"System: {part.content}"
        case TextPart():
            return f"Assistant: {part.content}"
        case CompactionPart():
            return f"Summary of what came before: {part.content}" if part.content else ""
        case BaseToolCallPart():
            return f"Assistant calls {part.tool_name}: {cut(part.args_as_json_str(), MAX_ARGS)}"
        case BaseToolReturnPart():
            outcome = "" if part.outcome == "success" else f" ({part.outcome})"
            return f"Result of {part.tool_name}{outcome}: {cut(part.model_response_str(), MAX_RESULT)}"
        case RetryFeedbackPart():
            return f"The assistant was asked to mend its answer: {cut(str(part.content), MAX_RESULT)}"
        case FilePart():
            return f"Assistant: {_file(part.content)}"
        case _:
            return ""


def _content(content: Any) -> str:
    """What a user sent: text as it is, files by name."""
    if isinstance(content, str):
        return content
    return " ".join(filter(None, map(_item, cast("Sequence[Any]", content))))


def _item(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, BinaryContent):
        return _file(item)
    if url := getattr(item, "url", None):
        return f"[{item.kind} {cut(url, MAX_ARGS)}]"
    return str(getattr(item, "content", ""))


def _file(file: BinaryContent) -> str:
    return f"[{file.media_type}, {len(file.data)} bytes]"
