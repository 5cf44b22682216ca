"""What every model on the wire shares: how it is read, written, measured and cut."""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, ValidationError, model_serializer
from pydantic_core import to_json, to_jsonable_python

WORKFLOW_TYPE = "AgentWorkflow"
"""The one workflow type, for every agent."""
TASK_QUEUE = "perdure"
"""The task queue of workers and clients that name none."""
TOOL_ACTIVITY_PREFIX = "tool:"
"""A tool call's activity type is this and the tool's name."""
Json = dict[str, Any]
"""A JSON object that is carried, never looked into."""
SEARCH_ATTRIBUTES = ("AgentName", "AgentStatus", "AgentWaiting")
"""The search attributes that a run sets. `AgentWaiting` is a KeywordList, the others are Keywords."""
KEYWORD_LISTS = ("AgentWaiting",)
MAY_HAVE_RUN = "It may or may not have run. Check before you repeat it."
"""What the model is told of a call whose attempt was lost."""
MAX_TEXT = 20_000
"""Characters of an error in history."""
MAX_DETAILS = 100_000
"""Bytes of the details of an error in history."""
ASCII_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters that look like nothing."""
MAX_TOLD = 20_000
"""Bytes of arguments or metadata in a notification and in the audit."""
MAX_DEPTH = 100
"""Levels of what people send."""
MAX_PAYLOAD = 1_500_000
"""Bytes of one payload that perdure writes. Temporal refuses 2 MB, summed over a command's payloads."""
MAX_STORED = 8_000_000
"""Bytes of a prompt, a tool result or a model response where a payload store carries what is larger than `OFFLOADED`.
A workflow task has two seconds to read what came; more than this at a time would make it fail, for ever."""
MAX_ANSWERS = 12_000_000
"""Bytes of the results of one step together, an equal share for each of its calls. One workflow task takes them into
the transcript, 30 ms a megabyte on a quiet machine; after two seconds Temporal's SDK fails it, again and again."""
MIN_RESULT = 1_000
"""Bytes that the limit of a tool's results is at least: less has no room for a note of what is missing."""
MAX_KEPT = 50_000_000
"""Bytes of a tool result that is kept outside the conversation."""
OFFLOADED = 256 * 1024
"""Bytes from which a payload goes into the payload store, where there is one."""


def canonical(value: Any) -> bytes:
    """The one way to write `value` (JSON) as bytes: sorted keys, no spaces, UTF-8. Runs anywhere."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def payload_size(value: Any) -> int:
    """Bytes of `value` (JSON or a model) as a payload."""
    return len(to_json(value))


def jsonable(value: Any) -> Any:
    """`value` as JSON has it: a `Decimal` as text, a `timedelta` in ISO 8601."""
    return to_jsonable_python(value)


def validation_problems(error: ValueError, root: str) -> str:
    """What a Pydantic `ValidationError` says, in one line: `root.field: message; …`."""
    if not isinstance(error, ValidationError):
        return f"{root}: {error}"
    rows = error.errors(include_url=False, include_context=False)
    return "; ".join(f"{'.'.join((root, *map(_place, row['loc'])))}: {row['msg']}" for row in rows[:10])


def _place(part: int | str) -> str:
    """A part of a path. A name that somebody made up is shown as what it is, and not whole."""
    return str(part) if isinstance(part, int) or part.isidentifier() else cut(ascii(part), 100)


def unfit(value: Any) -> str:
    """Why JSON that somebody sent can't be carried; empty = it can. Pydantic writes some 190 levels and reads fewer;
    numbers that aren't finite become null on the way."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        if any(isinstance(one, float) and not math.isfinite(one) for one in level):
            return "hold a number that isn't finite, which JSON doesn't know"
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return ""
    return f"are nested deeper than {MAX_DEPTH} levels"


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("Json", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []


def visible(text: str, keep: str = "") -> str:
    """`text` with what can't be seen, or turns or hides other text, as its code (`\\u202e`); but for those to keep."""
    if text.isascii():
        return ASCII_CONTROL.sub(lambda found: found[0] if found[0] in keep else f"\\u{ord(found[0]):04x}", text)
    return "".join(one if one in keep or not _is_hidden(one) else f"\\u{ord(one):04x}" for one in text)


def _is_hidden(letter: str) -> bool:
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") or letter in FILLERS


def cut(text: str, limit: int = MAX_TEXT) -> str:
    """`text`, cut to `limit` characters with a note of how much is missing."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"


def bounded_details(details: Sequence[Any]) -> list[Any]:
    """The details of a failure, or none where they are too large or can't be written: a failure must always fit."""
    try:
        return list(details) if payload_size(list(details)) <= MAX_DETAILS else []
    except ValueError:
        return []


def fitting(value: Json) -> Json:
    """`value`, or a note of its size where it is large and history holds it already."""
    size = payload_size(value)
    return value if size <= MAX_TOLD else {"left_out": f"{size} bytes: see the query `pending`"}


def args_digest(value: Any) -> str:
    """The digest of what a decision is about (JSON): SHA-256 of its canonical form, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def chain_digest(digest: str, entry: Json) -> str:
    """The digest of a transcript that had `digest` and got `entry`: chained SHA-256, in hex."""
    return hashlib.sha256(digest.encode() + canonical(entry)).hexdigest()


def is_empty(value: Any) -> bool:
    """Whether a field of a `Compact` model isn't written."""
    return value is None or value is False or (isinstance(value, str | list | dict) and not value)


class Sent(BaseModel):
    """What a person or program sends. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Recorded(BaseModel):
    """What is in history or answered. Unknown fields are kept."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Compact(Recorded):
    """What is in history many times: empty fields aren't written, but for those without a default, which have to be
    there where it is read. So no field may default to anything that is empty and mean something else by it."""

    @model_serializer(mode="wrap")
    def _without_empty(self, handler: SerializerFunctionWrapHandler) -> Json:
        fields = type(self).model_fields
        return {
            name: value
            for name, value in handler(self).items()
            if not is_empty(value) or (name in fields and fields[name].is_required())
        }
