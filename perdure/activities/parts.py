"""Parts of messages, as the entries of a transcript give them. Pure."""

from __future__ import annotations

from dataclasses import replace

from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart

from perdure.activities.parsing import plain_content
from perdure.contracts import Json

OUTCOMES = {"returned": "success", "retried": "retried", "denied": "denied", "expired": "denied", "failed": "failed"}
"""Pydantic AI's outcome of a tool return for ours; the others were interrupted."""


def user_part(entry: Json) -> Json:
    """What somebody said."""
    return {"part_kind": "user-prompt", "content": entry["content"], "timestamp": entry["at"]}


def told_part(outcome: Json, at: str) -> Json:
    """The answer to a call in our own words, or a result from outside."""
    return {
        "part_kind": "tool-return",
        "tool_name": outcome["tool"],
        "tool_call_id": outcome["tool_call_id"],
        "content": plain_content(outcome["content"]) if "content" in outcome else outcome.get("text", ""),
        "outcome": OUTCOMES.get(outcome["kind"], "interrupted"),
        "timestamp": at,
    }


def without_system_prompt(message: ModelMessage) -> ModelMessage:
    """The message without what another agent's system prompt says, unless nothing else is in it."""
    if not isinstance(message, ModelRequest):
        return message
    parts = [part for part in message.parts if not isinstance(part, SystemPromptPart)]
    return replace(message, parts=parts) if parts and len(parts) < len(message.parts) else message
