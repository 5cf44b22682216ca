"""Surrogates in what a model answers: half characters, which UTF-8 can't hold, and so Temporal can't carry.

A character outside the basic plane is a pair of them in JSON. A stream may be cut between the two, and models write one
alone.
"""

from __future__ import annotations

import dataclasses
from typing import Any, cast

from pydantic_ai.messages import ModelResponse, ModelResponsePart


def whole(text: str) -> str:
    """The text with pairs joined to their character, and U+FFFD in the place of one that is alone."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def joined(response: ModelResponse) -> ModelResponse:
    """The response with `whole` text in all its parts. Where they had it already it is the same object, to which
    Pydantic AI adds later what it knows."""
    parts = [_part(part) for part in response.parts]
    unchanged = all(new is old for new, old in zip(parts, response.parts, strict=True))
    return response if unchanged else dataclasses.replace(response, parts=parts)


def _part(part: ModelResponsePart) -> ModelResponsePart:
    values = {field.name: getattr(part, field.name) for field in dataclasses.fields(part) if field.init}
    changed = {name: new for name, value in values.items() if (new := _joined(value)) != value}
    return dataclasses.replace(part, **changed) if changed else part


def _joined(value: Any) -> Any:
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_joined(key): _joined(item) for key, item in items}
    if isinstance(value, list):
        return [_joined(item) for item in cast("list[Any]", value)]
    return value
