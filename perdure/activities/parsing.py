"""Pydantic AI's messages from their JSON, and how large they are as JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest, ToolReturnPart
from pydantic_core import to_json

from perdure.contracts import Json


def parse_messages(raw: Sequence[Json]) -> list[ModelMessage]:
    """Messages from their JSON. By way of bytes: only the JSON parser reads base64."""
    return ModelMessagesTypeAdapter.validate_json(to_json(raw)) if raw else []


def parse_request(parts: Sequence[Json]) -> ModelRequest:
    """A request from the JSON of its parts."""
    message = parse_messages([{"kind": "request", "parts": list(parts)}])[0]
    assert isinstance(message, ModelRequest)
    return message


def plain_content(content: Any) -> Any:
    """The content of a tool's answer, of a result that is JSON and nothing else. What has the shape of a file, which
    would be read as one, is given as its text."""
    written = to_json(content)
    if b'"kind"' not in written:
        return content
    part = {"part_kind": "tool-return", "tool_name": "", "tool_call_id": "", "content": content}
    read = cast("ToolReturnPart", parse_request([part]).parts[0]).content
    return content if read == content else written.decode()


def message_bytes(messages: Sequence[ModelMessage]) -> int:
    """Bytes of messages as JSON, without absent fields."""
    return len(ModelMessagesTypeAdapter.dump_json(list(messages), exclude_none=True))
