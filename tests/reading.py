"""What the history and the conversation of a run hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ToolReturnPart

from perdure.contracts import PlannedCall
from tests.harness import Handle


async def everything(handle: Handle) -> str:
    """The whole history of a run, as text."""
    history = await handle.fetch_history()
    return "\n".join(str(event) for event in history.events)


def returns(conversation: Sequence[ModelMessage]) -> list[ToolReturnPart[Any]]:
    """The answers to calls, in order."""
    return [part for message in conversation for part in message.parts if isinstance(part, ToolReturnPart)]


async def events(handle: Handle) -> list[Any]:
    """The types of the events of a run."""
    return [event.event_type for event in (await handle.fetch_history()).events]


async def open_activities(handle: Handle) -> list[str]:
    """The types of the activities of a run that are open now."""
    pending = (await handle.describe()).raw_description.pending_activities
    return [activity.activity_type.name for activity in pending]


async def planned(handle: Handle) -> list[PlannedCall]:
    """The calls of a run as its steps planned them."""
    done = [event.activity_task_completed_event_attributes for event in (await handle.fetch_history()).events]
    results = [json.loads(payload.data) for attributes in done for payload in attributes.result.payloads]
    return [PlannedCall.model_validate(call) for result in results for call in result.get("calls", [])]
