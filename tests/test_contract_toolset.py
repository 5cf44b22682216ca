"""What a contract toolset takes beside a handler, and what its contracts make of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from perdure import DeclarationError
from perdure.contracts import Target
from perdure.toolsets.contract import ToolContract
from perdure.toolsets.contract_toolset import ContractToolset
from tests.orders import ORDER, fields


def test_unknown_arguments_are_refused_unless_the_model_says_otherwise() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        n: int

    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        ORDER.args_validator.validate_python({"order_id": "a", "more": 1})
    contract = ToolContract("open", "Open.", Open, str)
    validated = contract.args_validator.validate_json('{"n": 1, "more": 2}')
    assert validated == {"n": 1, "more": 2}
    assert contract.read_input(validated).model_extra == {"more": 2}


def test_a_target_takes_arguments_that_the_contract_has() -> None:
    toolset = ContractToolset(id="orders")
    with pytest.raises(DeclarationError, match=r"its target takes \['amount'\].*\['count', 'note', 'order_id'\]"):
        toolset.target(ORDER, Target(kind="activity", name="Order", positional=["order_id", "amount"]))


def test_options_are_those_of_pydantic_ais_tool() -> None:
    toolset = ContractToolset(id="orders")
    decorate: Callable[..., Any] = toolset.handle(
        ORDER, sequential=True, timeout=3, requires_approval=True, strict=True, metadata={"team": "a"}
    )
    assert decorate(fields) is fields
    definition = toolset.tools["order"].tool_def
    assert (definition.sequential, definition.timeout, definition.kind, definition.strict) == (
        True,
        3,
        "unapproved",
        True,
    )
    assert definition.metadata == {"team": "a", "perdure_contract": {"name": "order", "version": "2"}}
    external: Any = ContractToolset(id="more").external
    with pytest.raises(DeclarationError, match=r"options \['time'\]"):
        external(ORDER, time=3)
