"""An agent's output as it goes into history."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any, Union, cast, get_origin

from pydantic_ai import NativeOutput, PromptedOutput

from perdure.activities.carry import dump_value
from perdure.contracts import Output


def dump_output(output_type: Any, value: Any) -> Output:
    """The output as JSON, with its type's name where the agent has several. Raises `NotCarried`."""
    name = type(value).__name__ if _several(output_type) and value is not None else None
    return Output(value=dump_value(value), type=name)


def _several(output_type: Any) -> bool:
    if isinstance(output_type, Sequence) and not isinstance(output_type, str):
        items = cast("Sequence[Any]", output_type)
        return len(items) > 1 or (len(items) == 1 and _several(items[0]))
    if isinstance(output_type, NativeOutput | PromptedOutput):
        return _several(cast("NativeOutput[Any]", output_type).outputs)
    return get_origin(output_type) in (Union, types.UnionType)
