"""What becomes of a tool result that is too large: told to the model, cut, or kept outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic_ai.messages import ModelRequestPart, ToolReturnPart

from perdure.activities.carry import dump_parts
from perdure.activities.faults import log_error
from perdure.activities.results import results_of_this_run
from perdure.activities.room import room
from perdure.contracts import MAX_ANSWERS, MAX_KEPT, MAX_PAYLOAD, CallOptions, Json, payload_size
from perdure.errors import PayloadStoreError

PREVIEW = 2_000
"""Bytes of a kept result that the model gets at once, as far as its policy lets it have so many."""


class TooLarge(Exception):
    """The result can't be carried; the text is for the model. Never leaves the activity."""


@dataclass(frozen=True)
class Bounds:
    """What bounds the result of a call."""

    options: CallOptions
    siblings: int = 1
    """The calls of the step, this one included."""
    reader: str = "read_result"
    """The name under which the model sees `read_result`."""

    @property
    def absolute(self) -> int:
        """Bytes of the answer as JSON, whatever becomes of a larger result."""
        own = room() if (self.options.max_result_bytes or 0) > MAX_PAYLOAD else MAX_PAYLOAD
        return min(own, MAX_ANSWERS // self.siblings)


async def carried(answer: ToolReturnPart, parts: Sequence[ModelRequestPart], bounds: Bounds) -> list[Json]:
    """The parts that answer a call, as JSON, within their bounds. Raises `TooLarge`, `NotCarried`."""
    dumped = dump_parts(parts)
    options, absolute = bounds.options, bounds.absolute
    most = options.max_result_bytes
    whole = payload_size(dumped)
    if answer.outcome != "success":
        return _within(dumped, absolute)
    text = _text(answer, parts)
    size = whole if text is None else len(text.encode())
    if whole <= absolute and (most is None or size <= most):
        return dumped
    if text is None or not options.large_result:
        shown = (size, most) if most is not None and size > most else (whole, absolute)
        raise TooLarge(_refusal(*shown, "Files and images are never cut. " if text is None else ""))
    if options.large_result == "store":
        return _within(
            dump_parts([replace(answer, content=await _kept(text, most or absolute, bounds.reader))]), absolute
        )
    return _cut(answer, text, most or absolute, absolute)


def _within(dumped: list[Json], absolute: int) -> list[Json]:
    if (size := payload_size(dumped)) > absolute:
        raise TooLarge(_refusal(size, absolute))
    return dumped


def _refusal(size: int, most: int, why: str = "") -> str:
    return f"The tool ran, but its result has {size} bytes; a result may have {most}. {why}Ask for less."


def _text(answer: ToolReturnPart, parts: Sequence[ModelRequestPart]) -> str | None:
    """What the model would read, where that is text alone: no files, nothing beside it, no meaning to Pydantic AI."""
    if len(parts) > 1 or answer.tool_kind is not None or answer.files:
        return None
    return answer.model_response_str(wrap_if_error=False)


def _cut(answer: ToolReturnPart, text: str, most: int, absolute: int) -> list[Json]:
    """The answer with head and tail of its text. As JSON text may grow: then less of it is shown."""
    while True:
        dumped = dump_parts([replace(answer, content=head_and_tail(text, most))])
        if (size := payload_size(dumped)) <= absolute:
            return dumped
        if most < PREVIEW:
            return _within(dumped, absolute)  # what is large isn't the text
        most = most * absolute // size * 9 // 10


def head_and_tail(text: str, most: int) -> str:
    """The first and last bytes of a text, `most` in all with the note between them, cut between characters."""
    data = text.encode()
    room = most - len(_note(len(data), len(data)).encode())
    head = data[: (room + 1) // 2].decode(errors="ignore")
    tail = data[len(data) - room // 2 :].decode(errors="ignore") if room > 1 else ""
    missing = len(data) - len(head.encode()) - len(tail.encode())
    return f"{head}{_note(missing, len(data))}{tail}"


def _note(missing: int, size: int) -> str:
    return f"\n[… {missing} of {size} bytes are left out here …]\n"


async def _kept(text: str, most: int, reader: str) -> str:
    """Keep a result; what the model is told instead. Raises `TooLarge` where it can't be kept: the tool has run."""
    size = len(text.encode())
    if size > MAX_KEPT:
        raise TooLarge(_refusal(size, MAX_KEPT))
    try:
        ref = await results_of_this_run().keep(text)
    except PayloadStoreError as error:
        log_error("a large result could not be kept", error)
        raise TooLarge(f"The tool ran, but its result of {size} bytes could not be kept. Ask for less.") from error
    about = f"The result has {size} bytes in {len(text)} characters. It is kept as {ref}; it begins:\n"
    first = text.encode()[: max(0, min(PREVIEW, most - 400))].decode(errors="ignore")
    return f"{about}{first}\n[… read on with {reader}(ref={ref!r}, start={len(first)}) …]"
