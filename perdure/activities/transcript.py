"""The one place that turns the entries of a transcript into Pydantic AI's messages. Pure.

A request of Pydantic AI is what stands between two responses: user messages and the answers to calls. Its parts are
kept as JSON until the response that answers them is known, since they may be replaced by what was really sent.

A note (`{"kind": "note", "upto": k, "keep": m, …}`) replaces the messages before it by one request, the summary, and
the last m of them. It holds whatever else a conversation needs of the first k entries, so that the conversation is the
same without them: `Conversation(mark=<the place after k>).extended(entries[k:])`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    UserPromptPart,
)

from perdure.activities.parsing import message_bytes, parse_messages, parse_request
from perdure.activities.parts import told_part, user_part, without_system_prompt
from perdure.contracts import Json, Mark, canonical, chain_digest


@dataclass(frozen=True)
class Conversation:
    """A transcript up to a mark, as messages. Never changed: `extended` makes a new one."""

    mark: Mark = field(default_factory=Mark)
    start: Json = field(default_factory=lambda: {})
    """The first entry: params and metadata of the run."""
    messages: tuple[ModelMessage, ...] = ()
    places: tuple[int, ...] = ()
    """For each message the entry that completed it: of a request, that of its response."""
    pending: tuple[Json, ...] = ()
    """Parts of the request that the model hasn't answered yet."""
    asked: Json | None = None
    """The last user message, as a part."""
    asked_at: int = -1
    """The entry it came with."""
    established: tuple[str, ...] | None = None
    """The tools that the model's requests were established with: later ones are announced to it as new."""
    revealed: Mapping[str, int] = field(default_factory=lambda: {})
    """Deferred tools that the model has been shown, with the entry that did it."""
    size: int = 0
    """Bytes of the entries, of compacted ones what is left of them."""

    def extended(self, entries: Iterable[Json]) -> Conversation:
        """This conversation with `entries` after it."""
        entries = list(entries)
        builder = _Builder(self._begun(entries))
        for entry in entries:
            builder.add(entry)
        return builder.conversation()

    def _begun(self, entries: Sequence[Json]) -> Conversation:
        """Where the entries before this place were dropped: with what they had revealed, from the note for them."""
        if self.mark.length == 0 or self.messages or self.start:
            return self
        notes = [entry for entry in entries if is_compaction(entry) and entry["upto"] == self.mark.length]
        return replace(self, revealed=dict.fromkeys(notes[0]["revealed"], self.mark.length)) if notes else self

    @property
    def response(self) -> ModelResponse | None:
        """The last message where it is a response."""
        last = self.messages[-1] if self.messages else None
        return last if isinstance(last, ModelResponse) else None

    def call_ids(self) -> frozenset[str]:
        """The ids of all tool calls so far."""
        responses = (message for message in self.messages if isinstance(message, ModelResponse))
        return frozenset(call.tool_call_id for response in responses for call in response.tool_calls)

    def prompt(self) -> Any:
        """The last user message, as Pydantic AI's `RunContext.prompt`."""
        if self.asked is None or isinstance(self.asked["content"], str):
            return self.asked and self.asked["content"]
        return cast("UserPromptPart", parse_request([self.asked]).parts[0]).content

    def request(self) -> ModelRequest:
        """The request to make next."""
        return parse_request(self.pending)


class _Builder:
    def __init__(self, base: Conversation) -> None:
        self._messages, self._places = list(base.messages), list(base.places)
        self._raw: list[Json] = []
        self._pending = list(base.pending)
        self._digest, self._length, self._size = base.mark.digest, base.mark.length, base.size
        self._start, self._established = base.start, base.established
        self._asked, self._asked_at = base.asked, base.asked_at
        self._revealed = dict(base.revealed)
        self._unsorted: list[Json] = []
        response = base.response
        self._order = _call_order([call.tool_call_id for call in response.tool_calls]) if response else {}

    def add(self, entry: Json) -> None:
        self._digest = chain_digest(self._digest, entry)
        self._length += 1
        self._size += len(canonical(entry))
        match entry["kind"]:
            case "start":
                self._start = entry
            case "user":
                self._asked, self._asked_at = user_part(entry), self._at
                self._pending.append(self._asked)
            case "response":
                self._respond(entry)
            case "request":
                self._pending = list(entry["request_parts"])
            case "outcomes":
                self._pending += self._answers(entry)
            case "handoff":
                self._hand_over(entry)
            case "note" if is_compaction(entry):
                self._compact(entry)
            case _:
                pass  # another note, or an entry of a newer version: not part of the conversation

    @property
    def _at(self) -> int:
        """The index of the entry that is being added."""
        return self._length - 1

    def _reveal(self, names: Iterable[str]) -> None:
        self._revealed = {**dict.fromkeys(names, self._at), **self._revealed}

    def _respond(self, entry: Json) -> None:
        response: Json = entry["response"]
        parts = entry.get("request_parts") or self._pending
        self._reveal(name for part in parts for name in _reveals(part))
        self._established = tuple(entry["established"]) if "established" in entry else self._established
        self._raw += [{"kind": "request", "parts": [_settled(part) for part in parts]}, response]
        self._places += [self._at, self._at]
        self._pending = []
        self._order = _call_order([part["tool_call_id"] for part in response["parts"] if _is_call(part)])

    def _answers(self, entry: Json) -> list[Json]:
        """The parts of a step's answers, once its last entry is there."""
        self._unsorted += entry.get("parts", [])
        for outcome in entry.get("outcomes", []):
            self._unsorted += outcome.get("parts") or [told_part(outcome, entry["at"])]
        if entry.get("more"):
            return []
        parts, self._unsorted = sorted(self._unsorted, key=self._rank), []
        return self._without_repeated_reveals(parts)

    def _rank(self, part: Json) -> tuple[int, int]:
        """Tool returns in call order, then user content, then feedback."""
        if part.get("tool_call_id") in self._order:
            return 0, self._order[part["tool_call_id"]]
        return {"user-prompt": 1, "retry-feedback": 2}.get(part["part_kind"], 1), 0

    def _without_repeated_reveals(self, parts: Sequence[Json]) -> list[Json]:
        """Parallel calls may reveal the same tool: the first in call order does, as in Pydantic AI."""
        kept: list[Json] = []
        for part in parts:
            names = _reveals(part)
            new = [name for name in names if name not in self._revealed]
            self._reveal(new)
            if names and not new:
                continue
            kept.append(part if new == names else {**part, "tools_added": new})
        return kept

    def _hand_over(self, entry: Json) -> None:
        """Another agent goes on, with its own params, system prompt and tools: none of them was announced to it."""
        self._start = {name: value for name, value in self._start.items() if name != "params"}
        self._start |= {name: entry[name] for name in ("agent", "params") if name in entry} | {"handoff": True}
        self._messages = [without_system_prompt(message) for message in self._parsed()]
        self._established, self._revealed = None, {}

    def _compact(self, note: Json) -> None:
        """Put a note's request in the place of all but the last messages. Nothing here may depend on the entries that
        it covers: they may be gone."""
        parts: list[Json] = note["parts"]
        upto: int = note["upto"]
        kept = self._parsed()[-note["keep"] :]
        self._messages = [parse_request(parts), *kept]
        self._places = [self._at, *self._places[-len(kept) :]]
        self._start = note["start"]
        self._established = tuple(note["established"]) if "established" in note else None
        names: list[str] = [*note["revealed"], *(name for part in parts for name in _reveals(part))]
        self._revealed = {name: max(at, upto) for name, at in self._revealed.items()}
        self._revealed = {**self._revealed, **dict.fromkeys(names, upto)}
        if self._asked_at < upto:
            self._asked = next((part for part in reversed(parts) if part["part_kind"] == "user-prompt"), None)
            self._asked_at = upto - 1
        self._size = len(canonical(note)) + message_bytes(kept)

    def _parsed(self) -> list[ModelMessage]:
        self._messages += parse_messages(self._raw)
        self._raw = []
        return self._messages

    def conversation(self) -> Conversation:
        return Conversation(
            mark=Mark(length=self._length, digest=self._digest),
            start=self._start,
            messages=tuple(self._parsed()),
            places=tuple(self._places),
            pending=tuple(self._pending),
            asked=self._asked,
            asked_at=self._asked_at,
            established=self._established,
            revealed=self._revealed,
            size=self._size,
        )


def is_compaction(entry: Json) -> bool:
    """Whether an entry is a note that stands for those before it."""
    return entry["kind"] == "note" and "keep" in entry


def _settled(part: Json) -> Json:
    """A part as a later step of the turn sees it: a dynamic system prompt is worked out once a turn, not every step."""
    return {name: value for name, value in part.items() if name != "dynamic_ref"}


def _reveals(part: Json) -> list[str]:
    if part["part_kind"] != "tool-availability-delta":
        return []
    return list(part.get("tools_added") or part.get("added") or [])


def _is_call(part: Json) -> bool:
    return part["part_kind"] == "tool-call"


def _call_order(ids: Sequence[str]) -> dict[str, int]:
    return {tool_call_id: index for index, tool_call_id in enumerate(ids)}
