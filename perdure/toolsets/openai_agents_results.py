"""What a tool of the OpenAI Agents SDK returned, as Pydantic AI reads it. Imported by `openai_agents` alone."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

from agents import FunctionTool, ToolOutputFileContent, ToolOutputImage, ToolOutputText
from agents.tool import ValidToolOutputPydanticModelsTypeAdapter
from pydantic import ValidationError
from pydantic_ai.messages import BinaryContent, DocumentUrl, ImageUrl, UploadedFile
from pydantic_core import PydanticSerializationError, to_jsonable_python

from perdure.errors import NotCarried
from perdure.toolsets.foreign import from_base64, one_or_list

Structured = ToolOutputText | ToolOutputImage | ToolOutputFileContent


def result_of(tool: FunctionTool, output: Any) -> Any:
    """Text, images and files as Pydantic AI's, JSON as it is. An object with a `__str__` of its own is that text, as in
    the SDK; what has none is left as it is, and can't be carried.

    Raises `NotCarried` where the tool has an `output_json_schema` and the output is no JSON object, and `ToolFailed`
    for an image or file whose data isn't base64.
    """
    if tool.output_json_schema is not None:
        return _object(tool, output)
    given = output
    items = list(cast("list[Any]", output)) if isinstance(output, list | tuple) else [output]
    structured = [found for item in items if (found := _structured(item)) is not None]
    if items and len(structured) == len(items):
        return one_or_list([_carried(item, tool.qualified_name) for item in structured])
    try:
        to_jsonable_python(given)
    except (PydanticSerializationError, ValueError):
        return given if type(given).__str__ is object.__str__ else str(given)
    return given


def _object(tool: FunctionTool, output: Any) -> Any:
    try:
        value: Any = json.loads(output) if isinstance(output, str) else to_jsonable_python(output, by_alias=True)
    except (PydanticSerializationError, ValueError):
        value = None
    if not isinstance(value, Mapping):
        raise NotCarried(f"tool {tool.qualified_name!r} returned no JSON object, which its output_json_schema promises")
    return cast("Mapping[str, Any]", value)


def _structured(item: Any) -> Structured | None:
    """The SDK's own reading of an item: its output models, and dicts that look like one."""
    if isinstance(item, Structured):
        return item
    if not isinstance(item, dict) or "type" not in item:
        return None
    try:
        return ValidToolOutputPydanticModelsTypeAdapter.validate_python(item)
    except ValidationError:
        return None


def _carried(item: Structured, tool: str) -> Any:
    if isinstance(item, ToolOutputText):
        return item.text
    if item.file_id is not None:
        return UploadedFile(item.file_id, "openai")
    if isinstance(item, ToolOutputImage):
        detail = {"detail": item.detail} if item.detail else None
        url = item.image_url or ""
        return _inline(url, tool) if url.startswith("data:") else ImageUrl(url, vendor_metadata=detail)
    if item.file_data is None:
        return DocumentUrl(item.file_url or "")
    if item.file_data.startswith("data:"):
        return _inline(item.file_data, tool)
    guessed, _ = mimetypes.guess_type(item.filename or "")
    return BinaryContent(from_base64(tool, item.file_data), media_type=guessed or "application/octet-stream")


def _inline(url: str, tool: str) -> BinaryContent:
    """What a `data:` address holds."""
    from_base64(tool, unquote(url.partition(";base64,")[2] or "-"))
    return BinaryContent.from_data_uri(url)
