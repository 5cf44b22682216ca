"""What is wrong with a contract is found where it is made, and what contradicts it by the App."""

from __future__ import annotations

import io
from typing import Any

import pytest
from pydantic import AliasPath, BaseModel, Field, RootModel, SecretStr

from perdure import DeclarationError, ToolPolicy
from perdure.toolsets.contract import ToolContract
from perdure.toolsets.contract_toolset import ContractToolset
from tests.declaring import Left, Lock, Locked, Small, declared


def contracted(**options: Any) -> ToolContract:
    """A contract, with something else in it."""
    make: Any = ToolContract
    return make(**{"name": "look", "description": "Look.", "input_model": Small, "output_model": Small, **options})


def test_a_policy_does_not_say_what_a_contract_says() -> None:
    toolset = ContractToolset(id="c")
    toolset.external(contracted())
    with pytest.raises(DeclarationError, match="policy 'look': result=… is for tools without a contract"):
        declared(toolset, policies={"look": ToolPolicy(result=Small)})


class Path(BaseModel):
    n: int = Field(validation_alias=AliasPath("a", 0))


class Secret(BaseModel):
    key: SecretStr


class Listed(RootModel[list[int]]):
    pass


CONTRACTS: list[tuple[dict[str, Any], str]] = [
    ({"name": "look-up"}, "'look-up' must be an identifier"),
    ({"name": "class"}, "no keyword of Python"),
    ({"name": "x" * 65}, "at most 64"),
    ({"name": "größe"}, "ASCII"),
    ({"description": " "}, "contract 'look': it has no description"),
    ({"input_model": int}, "must be a BaseModel with a field an argument"),
    ({"input_model": Listed}, "must be a BaseModel"),
    ({"input_model": Secret}, "the argument 'key' is write-only"),
    ({"input_model": Path}, "Path.n is written under another name"),
    ({"input_model": Left}, "Left.gone is excluded"),
    ({"input_model": Locked}, "contract 'look': input_model: Locked can't be written as JSON"),
    ({"output_model": io.TextIOWrapper}, "contract 'look': output_model: TextIOWrapper can be read once only"),
    ({"output_model": Lock}, "contract 'look': output_model: lock can't be written as JSON"),
]


@pytest.mark.parametrize(("options", "message"), CONTRACTS, ids=[row[1][:30] for row in CONTRACTS])
def test_s3_06_a_contract_that_cannot_be_kept_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        contracted(**options)
