"""How much one activity may answer: more where a payload store carries it."""

from __future__ import annotations

from temporalio import activity

from perdure.contracts import MAX_PAYLOAD, MAX_STORED


def stores() -> bool:
    """Whether the worker's data converter has a payload store. Only in an activity."""
    return activity.client().data_converter.external_storage is not None


def room() -> int:
    """Bytes that the answer of an activity may have as JSON. Only in an activity."""
    return MAX_STORED if stores() else MAX_PAYLOAD
