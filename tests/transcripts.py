"""Entries of transcripts, and a conversation made of them."""

from __future__ import annotations

from typing import Any

from perdure.activities.note import cover, note
from perdure.activities.transcript import Conversation
from perdure.contracts import Json

AT = "2026-11-30T10:00:00+00:00"
START: Json = {"kind": "start", "agent": "a", "at": AT, "params": {"customer": "ada"}, "metadata": {"ticket": 7}}


def user(text: str) -> Json:
    return {"kind": "user", "content": text, "at": AT}


def called(*ids: str, tool: str = "look", **more: Any) -> Json:
    parts = [{"part_kind": "tool-call", "tool_name": tool, "args": {"id": id}, "tool_call_id": id} for id in ids]
    return {"kind": "response", "response": {"kind": "response", "parts": parts, "timestamp": AT}, **more}


def answered(*ids: str, tool: str = "look", reveals: tuple[str, ...] = (), text: str = "seen") -> Json:
    rows = [{"key": id, "tool_call_id": id, "tool": tool, "kind": "returned", "text": f"{text} {id}"} for id in ids]
    entry: Json = {"kind": "outcomes", "step": 1, "at": AT, "outcomes": rows}
    return entry | ({"parts": [delta(*reveals)]} if reveals else {})


def delta(*names: str) -> Json:
    return {"part_kind": "tool-availability-delta", "tools_added": list(names)}


def built(entries: list[Json]) -> Conversation:
    return Conversation().extended(entries)


def compacted(entries: list[Json], keep_bytes: int = 0, summary: str = "what was") -> list[Json]:
    """The entries with a note after them, or as they are where there is nothing to cover."""
    conversation = built(entries)
    covered = cover(conversation, keep_bytes)
    if covered is None:
        return entries
    return [*entries, {**note(conversation, covered, summary, "m"), "at": AT, "step": 1}]


RUN = [START, user("Look at it."), called("a"), answered("a"), called("b"), answered("b"), called("c"), answered("c")]
