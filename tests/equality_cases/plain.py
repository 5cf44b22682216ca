"""Messages and requests as plain data that two runs can be compared by."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from enum import Enum
from typing import Any, cast

from pydantic import BaseModel
from pydantic_ai.messages import (
    BaseToolReturnPart,
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo

LEFT_OUT = {"timestamp", "run_id", "conversation_id", "duration", "dynamic_ref"}
"""What two runs of the same script differ in, and what no model reads (`dynamic_ref`: which prompts to make anew)."""
MADE_UP_ID = re.compile(r"<(\w+):[0-9a-f]{6}>")
"""The id that Pydantic AI gives a capability without one, anew in every run."""


def plain_messages(messages: Sequence[ModelMessage]) -> list[Any]:
    """Messages as data. Tool results as the model reads them, call ids by their place in the conversation."""
    return Ids().renamed(messages)


def seen_by_model(messages: Sequence[ModelMessage], info: AgentInfo) -> Any:
    """One request, as the model function was given it."""
    last = messages[-1]
    settings = {name: value for name, value in (info.model_settings or {}).items() if name != "max_retries"}
    return {
        "messages": plain_messages(messages),
        "instructions": info.instructions,
        "request_instructions": last.instructions if isinstance(last, ModelRequest) else None,
        "settings": plain(settings),
        "function_tools": plain(info.function_tools),
        "output_tools": plain(info.output_tools),
        "allow_text_output": info.allow_text_output,
        "parameters": plain(info.model_request_parameters),
    }


class Ids:
    """Names calls by their place, so that generated ids compare equal."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._responses = 0

    def renamed(self, messages: Sequence[ModelMessage]) -> list[Any]:
        return [self._message(message) for message in messages]

    def _message(self, message: ModelMessage) -> Any:
        if isinstance(message, ModelResponse):
            self._responses += 1
            calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
            self._names |= {part.tool_call_id: f"#{self._responses}.{at}" for at, part in enumerate(calls)}
        data = plain(message)
        data.pop("instructions", None)  # not stored by perdure: resolved anew for each request
        for part in data["parts"]:
            if part.get("tool_call_id") in self._names:
                part["tool_call_id"] = self._names[part["tool_call_id"]]
        if isinstance(message, ModelRequest):
            in_call_order(data["parts"])
        return data


def in_call_order(parts: list[Any]) -> None:
    """Sort the tool returns among themselves, in place: that is how a model reads them (`Model.prepare_messages`)."""
    places = [index for index, part in enumerate(parts) if part["type"].endswith("ReturnPart")]
    returns = sorted((parts[index] for index in places), key=lambda part: place(part["tool_call_id"]))
    for index, part in zip(places, returns, strict=True):
        parts[index] = part


def place(id: str) -> tuple[int, ...]:
    """`#2.10` as `(2, 10)`."""
    return tuple(int(number) for number in id[1:].split(".")) if id.startswith("#") else ()


def plain(value: Any) -> Any:
    """A value as data: dataclasses and models by their type's name and public fields."""
    if isinstance(value, BaseToolReturnPart):
        part = cast("BaseToolReturnPart[Any]", value)
        items = part.content_items(mode="str")
        reading = [part.model_response_str(), *([] if all(isinstance(item, str) for item in items) else items)]
        return _fields(dataclasses.replace(part, content=None)) | {"content": plain(reading)}
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, BaseModel):
        return {"type": type(value).__name__} | {name: plain(item) for name, item in dict(value).items()}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in cast("set[Any]", value)), key=repr)
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, datetime | date):
        return value.isoformat().replace("+00:00", "Z")  # as it is after JSON
    if isinstance(value, str):
        return MADE_UP_ID.sub(r"<\1>", value)
    return value if isinstance(value, int | float | bytes | None) else str(value)


def _fields(value: Any) -> dict[str, Any]:
    kind = BinaryContent.__name__ if isinstance(value, BinaryContent) else type(value).__name__
    names = [field.name for field in dataclasses.fields(value)]
    public = [name for name in names if not name.startswith("_") and name not in LEFT_OUT]
    return {"type": kind} | {name: plain(getattr(value, name)) for name in public}


def difference(ours: Any, theirs: Any, at: str = "") -> list[str]:
    """Where two pieces of plain data differ, one line each."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        left, right = cast("dict[str, Any]", ours), cast("dict[str, Any]", theirs)
        return [
            line
            for name in {**left, **right}
            for line in difference(left.get(name, "(absent)"), right.get(name, "(absent)"), f"{at}.{name}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list):
        items = cast("list[Any]", ours), cast("list[Any]", theirs)
        if len(items[0]) == len(items[1]):
            return [
                line
                for index, pair in enumerate(zip(*items, strict=True))
                for line in difference(*pair, f"{at}[{index}]")
            ]
    return [] if ours == theirs else [f"{at}: {ours!r} is not {theirs!r}"]
