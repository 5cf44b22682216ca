"""Whether a model can stream, and what of a stream is shown."""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.wrapper import WrapperModel

from perdure.context import Live


def can_stream(model: Model) -> bool:
    """Whether to stream a request: not with a `FallbackModel`, which doesn't fail over in the middle of a stream."""
    if isinstance(model, WrapperModel):
        return can_stream(model.wrapped)
    if isinstance(model, FallbackModel) or type(model).request_stream is Model.request_stream:
        return False
    return not isinstance(model, FunctionModel) or model.stream_function is not None


def show(live: Live, event: Any) -> None:
    """Add what an event says to the live text."""
    match event:
        case PartStartEvent(part=TextPart(content=text)):
            live.set(live.text + text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            live.set(live.text + text)
        case _:
            return
