"""What a tool of LangChain returned, as Pydantic AI reads it. Imported by `langchain` alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import BinaryContent, DocumentUrl, ImageUrl, ToolReturn
from pydantic_core import PydanticSerializationError, to_jsonable_python

from perdure.contracts import Json, payload_size
from perdure.errors import NotCarried
from perdure.toolsets.foreign import from_base64, one_or_list

MAX_ARTIFACT = 65_536
"""Bytes of an artifact, which no model reads; a larger one is left out."""


def result_of(name: str, message: Any) -> ToolReturn[Any]:
    """The content for the model, with the artifact beside it. Raises `ToolFailed` for an error the tool handled, and
    for an image or file whose data isn't base64."""
    if not isinstance(message, ToolMessage):
        raise NotCarried(f"tool {name!r} returned {type(message).__name__}, which only LangGraph can do something with")
    if message.status == "error":
        raise ToolFailed(str(message.text))
    content: Any = message.content
    if not isinstance(content, str):
        content = one_or_list([_block(block, name) for block in message.content_blocks])
    artifact: Any = message.artifact
    return ToolReturn(content, metadata=None if artifact is None else _artifact(artifact))


def _block(block: Mapping[str, Any], tool: str) -> Any:
    """A block of content: text, image and file as Pydantic AI has them, others as JSON."""
    kind, url = block["type"], block.get("url")
    if kind == "text":
        return block["text"]
    if block.get("base64"):
        return BinaryContent(from_base64(tool, block["base64"]), media_type=block.get("mime_type") or f"{kind}/*")
    if kind == "image" and url:
        return ImageUrl(url)
    if kind == "file" and url:
        return DocumentUrl(url)
    return dict(block)


def _artifact(artifact: Any) -> Json:
    """The artifact as metadata of the result, which goes into history; or why it isn't there."""
    try:
        written = to_jsonable_python(artifact)
        size = payload_size(written)
    except (PydanticSerializationError, ValueError):
        return {"artifact_omitted": f"{type(artifact).__name__} is not JSON"}
    if size > MAX_ARTIFACT:
        return {"artifact_omitted": f"{size} bytes; it may have {MAX_ARTIFACT}"}
    return {"artifact": written}
