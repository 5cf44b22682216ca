"""The data converter of workers and clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter


class Undecodable:
    """Stands for a payload that can't be read. Checks of the argument refuse it, as any value that isn't an object."""

    def __init__(self, problem: str) -> None:
        self.problem = problem

    def __repr__(self) -> str:
        return f"a payload that can't be read ({self.problem})"


class PayloadConverter(PydanticPayloadConverter):
    """Temporal's own Pydantic converter, but for payloads that it can't read.

    Where no type is asked for (the workflow's argument, an answer of an activity), one becomes `Undecodable`: raised,
    it would fail the workflow task before any of our code has run, for ever.
    """

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """Read each payload on its own."""
        hints: list[Any] = list(type_hints or [None] * len(payloads))
        return [value for pair in zip(payloads, hints, strict=True) for value in self._read(*pair)]

    def _read(self, payload: Payload, hint: Any) -> list[Any]:
        try:
            return super().from_payloads([payload], None if hint is None else [hint])
        except Exception as error:
            if hint is not None and hint is not Any:
                raise
            return [Undecodable(_why(error))]


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(row["msg"] for row in error.errors(include_url=False, include_context=False))
    return next(iter(str(error).splitlines()), type(error).__name__)


_CONVERTER = DataConverter(payload_converter_class=PayloadConverter)


def data_converter() -> DataConverter:
    """JSON that any client can read and write: Temporal's own Pydantic converter, but for unreadable payloads."""
    return _CONVERTER
