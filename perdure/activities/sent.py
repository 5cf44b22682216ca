"""What of the request that a step has sent goes into the transcript.

A hook may change the newest request, and Pydantic AI records there what it tells the model of tools and instructions:
that is part of the conversation from then on, as in `agent.run`. A history processor that rewrites older messages, or
takes an answer away from its call, shapes what is sent and no more: the transcript stays whole, and the processor sees
all of it in the next step. (`agent.run` keeps what it left, and hands it that.)
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai import AgentRun
from pydantic_ai.messages import (
    CapabilityLoadDeltaPart,
    InstructionBaselinePart,
    InstructionDeltaPart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelSettingsDeltaPart,
    ToolAvailabilityDeltaPart,
    ToolReturnPart,
)

from perdure.activities.carry import dump_parts
from perdure.activities.transcript import Conversation
from perdure.contracts import Json

RECORDS = (
    CapabilityLoadDeltaPart,
    InstructionBaselinePart,
    InstructionDeltaPart,
    ModelSettingsDeltaPart,
    ToolAvailabilityDeltaPart,
)
"""What Pydantic AI adds to a request for itself."""


def changed_parts(run: AgentRun[object, object], conversation: Conversation, responded: bool) -> list[Json] | None:
    """The parts of the request that was sent, as JSON, where they aren't what the transcript gives; else `None`."""
    history = run.ctx.state.message_history
    at = _request_index(history, responded)
    request = history[at] if at >= 0 else None
    if not isinstance(request, ModelRequest):
        return None
    pending = conversation.request().parts
    own, parts = dump_parts(pending), request.parts
    if _is_a_view(history[:at], parts, conversation, pending):
        parts = [*pending, *(part for part in parts if isinstance(part, RECORDS) and part not in pending)]
    sent = dump_parts(parts)
    return None if _untimed(sent) == _untimed(own) else sent


def _request_index(history: Sequence[ModelMessage], responded: bool) -> int:
    """Where the request is: last, or before the last response."""
    if not responded:
        return len(history) - 1
    return next((at for at in range(len(history) - 1, -1, -1) if isinstance(history[at], ModelResponse)), 0) - 1


def _is_a_view(
    before: Sequence[ModelMessage],
    parts: Sequence[ModelRequestPart],
    conversation: Conversation,
    pending: Sequence[ModelRequestPart],
) -> bool:
    """Whether more was rewritten than the newest request."""
    if _answered(pending) - _answered(parts):
        return True
    return parts != pending and [one.parts for one in before] != [one.parts for one in conversation.messages]


def _answered(parts: Sequence[ModelRequestPart]) -> set[str]:
    return {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}


def _untimed(parts: Sequence[Json]) -> list[Json]:
    return [{name: value for name, value in part.items() if name != "timestamp"} for part in parts]
