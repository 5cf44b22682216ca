"""Values as the JSON that goes into history, so that what comes back is what was there.

Everything is normalised once, here, in the activity: a value that a round trip would change for the model is stored as
the text the model would read.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel
from pydantic_ai.messages import (
    BaseToolReturnPart,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
)
from pydantic_ai.toolsets import ToolsetTool
from pydantic_ai.usage import RunUsage
from pydantic_core import PydanticSerializationError, from_json, to_jsonable_python

from perdure.activities.not_finite import as_text
from perdure.activities.parsing import parse_messages
from perdure.contracts import Json, Usage
from perdure.errors import ArgumentsNotCarried, NotCarried

LEFT_OUT = ("run_id", "conversation_id")
"""Fields of a response that say nothing a run doesn't know."""
OWN_USAGE = {"requests", "tool_calls", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"}


def dump_response(response: ModelResponse) -> Json:
    """A model response as JSON. Raises `NotCarried`."""
    dumped = _dump_messages([response])[0]
    slim = {name: value for name, value in dumped.items() if value is not None and name not in LEFT_OUT}
    slim["parts"] = [_slim(part) for part in dumped["parts"]]
    slim["usage"] = {name: value for name, value in dumped["usage"].items() if value not in (None, 0, {})}
    return slim


def dump_parts(parts: Sequence[ModelRequestPart]) -> list[Json]:
    """Request parts as JSON, tool results normalised. Raises `NotCarried`, naming the type of a result."""
    if not parts:
        return []
    for part in parts:
        if isinstance(part, BaseToolReturnPart):
            _refuse_one_shot(part.content)
    dumped = _dump_parts(parts)
    changed = [_normalised(before, after) for before, after in zip(parts, _load(dumped), strict=True)]
    return dumped if all(new is old for new, old in zip(changed, parts, strict=True)) else _dump_parts(changed)


def _refuse_one_shot(value: Any) -> None:
    """Refuse what can be read once only: writing it down would use it up, or leave it running."""
    kind = cast("type[Any]", type(value))
    if issubclass(kind, Iterator | AsyncIterator | Awaitable):
        raise NotCarried(f"a {kind.__name__} can be read once only; return a list")
    if isinstance(value, Mapping):
        value = list(cast("Mapping[Any, Any]", value).values())
    if isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            _refuse_one_shot(item)


def _normalised(part: ModelRequestPart, after: ModelRequestPart) -> ModelRequestPart:
    """A tool result that the model reads the same after the round trip: as it is, as plain JSON, or as text."""
    if not isinstance(part, BaseToolReturnPart) or _reading(part) == _reading(after):
        return part
    plain = dataclasses.replace(part, content=_plain(part))
    if _reading(_load(_dump_parts([plain]))[0]) == _reading(part):
        return plain
    return dataclasses.replace(part, content=part.model_response_str(wrap_if_error=False))


def _plain(part: BaseToolReturnPart[Any]) -> Any:
    items = part.content_items(mode="jsonable", wrap_if_error=False)
    return items if isinstance(part.content, list) else items[0]


def _reading(part: ModelRequestPart) -> list[Any]:
    """What the model reads of a tool result; files by what is in them."""
    assert isinstance(part, BaseToolReturnPart)
    items = part.content_items(mode="str")
    return [part.model_response_str(), *(item if isinstance(item, str) else _file(item) for item in items)]


def _file(item: Any) -> tuple[Any, ...]:
    return item.kind, item.media_type, getattr(item, "data", None), getattr(item, "url", None)


def _load(dumped: Sequence[Json]) -> Sequence[ModelRequestPart]:
    return cast("ModelRequest", parse_messages([{"kind": "request", "parts": list(dumped)}])[0]).parts


def _dump_parts(parts: Sequence[ModelRequestPart]) -> list[Json]:
    return [_slim(part) for part in _dump_messages([ModelRequest(parts=list(parts))])[0]["parts"]]


def _slim(part: Json) -> Json:
    """A part without its absent fields: they are the greater part of a small message."""
    return {name: value for name, value in part.items() if value is not None or name in ("content", "args")}


def _dump_messages(messages: Sequence[ModelRequest | ModelResponse]) -> list[Json]:
    try:
        return from_json(ModelMessagesTypeAdapter.dump_json(list(messages)))
    except (PydanticSerializationError, UnicodeError, ValueError) as error:
        raise NotCarried(f"{_first_line(error)}") from error


def dump_value(value: Any) -> Any:
    """An output as JSON. Raises `NotCarried`, naming its type."""
    try:
        return to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="strings")
    except (PydanticSerializationError, UnicodeError, ValueError) as error:
        raise NotCarried(f"{type(value).__name__}: {_first_line(error)}") from error


def canonical_args(tool: ToolsetTool[Any], validated: Mapping[str, Any], context: Any) -> Any:
    """The JSON of validated arguments that, validated again, gives the same arguments.

    Defaults and coercions are in it: what is shown is what runs. Raises `ArgumentsNotCarried`, naming the field whose
    value would change (a secret written as asterisks, an excluded field, an alias that reads but doesn't write).
    """
    dumped = _dump_args(tool, dict(validated))
    envelope = as_text(dumped)
    if tool.tool_def.kind == "external" and dumped == envelope:
        return envelope  # JSON already: only its schema has looked at it
    candidates: list[Any] = [envelope]
    properties: Mapping[str, Any] = tool.tool_def.parameters_json_schema.get("properties", {})
    if len(validated) == 1 and not set(validated) <= set(properties):
        candidates.insert(0, next(iter(envelope.values())))  # a single model argument is sent without its name
    lost: str | None = None
    for candidate in candidates:
        try:
            again = tool.args_validator.validate_python(candidate, context=context)
        except ValueError as error:
            lost = lost or _first_line(error)
            continue
        changed = [name for name in validated if not same(validated[name], again.get(name))]
        if not changed and set(again) == set(validated):
            return candidate
        lost = ", ".join(repr(name) for name in changed) or lost
    raise ArgumentsNotCarried(
        f"tool {tool.tool_def.name!r}: the argument {lost} is not the same when it was written as JSON and read again, "
        "so what was shown would not be what runs. Use a type that survives JSON, or pass a reference."
    )


def _dump_args(tool: ToolsetTool[Any], validated: dict[str, Any]) -> dict[str, Any]:
    try:
        return to_jsonable_python(validated, by_alias=True, round_trip=True, bytes_mode="utf8")
    except (PydanticSerializationError, UnicodeError, ValueError) as error:
        raise ArgumentsNotCarried(
            f"tool {tool.tool_def.name!r}: its arguments can't be written as JSON: {error}"
        ) from error


def are_numbers_kept(tool: ToolsetTool[Any], validated: Mapping[str, Any], context: Any) -> bool:
    """Whether NaN and the infinities, if there are any, are among arguments that are declared as numbers."""
    try:
        dumped = _dump_args(tool, dict(validated))
    except ArgumentsNotCarried:
        return True  # that they can't be written at all is said when the call is planned
    try:
        return dumped == as_text(dumped) or bool(canonical_args(tool, validated, context))
    except ArgumentsNotCarried:
        return False


def same(left: Any, right: Any) -> bool:
    """Whether two validated values are the same, looked into where they don't compare by value."""
    if left is right or (
        isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right)
    ):
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, BaseModel):
        return same(left.__dict__, right.__dict__)
    if dataclasses.is_dataclass(left) and not isinstance(left, type):
        return all(same(getattr(left, field.name), getattr(right, field.name)) for field in dataclasses.fields(left))
    if isinstance(left, Mapping):
        pairs = cast("Mapping[Any, Any]", left), cast("Mapping[Any, Any]", right)
        return pairs[0].keys() == pairs[1].keys() and all(same(pairs[0][key], pairs[1][key]) for key in pairs[0])
    if isinstance(left, list | tuple):
        items = tuple(cast("Sequence[Any]", left)), tuple(cast("Sequence[Any]", right))
        return len(items[0]) == len(items[1]) and all(same(a, b) for a, b in zip(*items, strict=True))
    if type(left).__eq__ is object.__eq__:
        return same(vars(left), vars(right)) if hasattr(left, "__dict__") else False
    return bool(left == right)


def usage_between(before: RunUsage, after: RunUsage, unpriced: int = 0) -> Usage:
    """What an activity used."""
    difference = {name: getattr(after, name) - getattr(before, name) for name in _counters(before)}
    details = {name: count - before.details.get(name, 0) for name, count in after.details.items()}
    cost = None if after.cost is None else after.cost - (before.cost or 0)
    return Usage(
        **{name: value for name, value in difference.items() if name in OWN_USAGE},
        cost=cost,
        unpriced_requests=unpriced,
        more={name: value for name, value in difference.items() if value and name not in OWN_USAGE},
        details={name: count for name, count in details.items() if count},
    )


def run_usage(usage: Usage) -> RunUsage:
    """The workflow's count as Pydantic AI's, for `RunContext.usage`."""
    counters = {name: getattr(usage, name) for name in OWN_USAGE}
    result = RunUsage(**counters, details=dict(usage.details))
    for name, value in usage.more.items():
        setattr(result, name, value)
    result.cost = usage.cost
    return result


def _counters(usage: RunUsage) -> Iterable[str]:
    fields = (field.name for field in dataclasses.fields(usage))
    return [name for name in fields if name not in ("details", "cost")]


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
