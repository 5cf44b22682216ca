"""Contracts that don't write what is empty: everything that was written can be read, and means the same."""

from __future__ import annotations

import types
from typing import Any, Union, get_args, get_origin

import pytest

import perdure.contracts
from perdure.contracts import CallOutcome
from perdure.contracts.base import Compact, is_empty

MISSING = object()


def below(model: type[Compact]) -> list[type[Compact]]:
    """Every contract that derives from it."""
    return [inner for child in model.__subclasses__() for inner in (child, *below(child))]


MODELS = [model for model in below(Compact) if model.__module__.startswith(perdure.contracts.__name__)]


def empty_of(kind: Any) -> Any:
    """A value of the type that isn't written; `MISSING` where it has none."""
    origin = get_origin(kind) or kind
    if origin in (Union, types.UnionType):
        return next((value for value in map(empty_of, get_args(kind)) if value is not MISSING), MISSING)
    if origin in (type(None), Any):
        return None
    empty: dict[Any, Any] = {str: "", bool: False, list: [], dict: {}}
    return empty.get(origin, MISSING)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_field_without_a_default_is_written_also_when_it_is_empty(model: type[Compact]) -> None:
    required = {name: empty_of(field.annotation) for name, field in model.model_fields.items() if field.is_required()}
    empty = {name: value for name, value in required.items() if value is not MISSING}
    written = model.model_construct(**empty).model_dump(include=set(empty))
    assert written == empty


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_field_that_can_be_empty_has_an_empty_default(model: type[Compact]) -> None:
    for name, field in model.model_fields.items():
        if field.is_required() or (empty := empty_of(field.annotation)) is MISSING:
            continue
        assert is_empty(field.get_default(call_default_factory=True)), f"{name}={empty!r} would be read as the default"


def test_the_outcome_of_a_call_of_a_tool_without_a_name_can_be_read() -> None:
    outcome = CallOutcome(key="0.abc", tool_call_id="", tool="", kind="returned")
    assert CallOutcome.model_validate(outcome.model_dump(mode="json")) == outcome
