"""The data converter of workers and clients."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter, ExternalStorage

from perdure.contracts import OFFLOADED
from perdure.payloads.configured import VARIABLE, payload_store


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


@cache
def _converter(address: str) -> DataConverter:
    plain = DataConverter(payload_converter_class=PayloadConverter)
    if not address:
        return plain
    storage = ExternalStorage(drivers=[payload_store(address)], payload_size_threshold=OFFLOADED)
    return replace(plain, external_storage=storage)


def data_converter() -> DataConverter:
    """JSON that any client can read and write: Temporal's own Pydantic converter, but for unreadable payloads.

    Where the environment's `PERDURE_PAYLOADS` names a payload store, what is larger than `OFFLOADED` is kept there.
    Raises `DeclarationError` for a value that names none.
    """
    return _converter(os.environ.get(VARIABLE, "").strip())
