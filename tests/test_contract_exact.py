"""What a contract's handler is given, and small faults of declarations and errors."""

from __future__ import annotations

import logging
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field
from pydantic_ai import Agent
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from perdure import App, DurableAgent, ToolPolicy
from perdure.errors import DeclarationError
from perdure.toolsets.contract import ToolContract
from perdure.toolsets.contract_toolset import ContractToolset
from tests.deciding import only
from tests.harness import failure_of, working
from tests.scripts import Script


class Line(BaseModel):
    sku: str
    price: Decimal


class Basket(BaseModel):
    day: date = Field(alias="from")
    lines: list[Line]
    part: Basket | None = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    sku: str


ARGS: dict[str, Any] = {"from": "2026-01-02", "lines": [{"sku": "A", "price": "1.20"}]}
WHOLE = ARGS | {"part": ARGS}


def shop(contract: ToolContract, function: Any, args: dict[str, Any], **policy: Any) -> App:
    toolset = ContractToolset([contract], id="shop")
    toolset.handle(contract, function)
    agent = Agent(Script({contract.name: args}, "done").model, name="shop", toolsets=[toolset])
    return App(agents=[DurableAgent(agent, policies={contract.name: ToolPolicy(**policy)})])


@pytest.mark.parametrize(("model", "args"), [(Basket, WHOLE), (Open, {"sku": "A", "more": 1})])
async def test_a_handler_is_given_the_contracts_own_model(client: Client, cache: int, model: Any, args: Any) -> None:
    seen: list[BaseModel] = []

    def pack(asked: BaseModel) -> str:
        seen.append(asked)
        return "packed"

    pack.__annotations__["asked"] = model
    contract = ToolContract("pack", "Pack.", model)
    async with working(client, shop(contract, pack, args), cache=cache) as runs:
        await (await runs.start("shop", "go")).result()
    (one,) = seen
    assert type(one) is model
    assert one == model.model_validate(args)


async def test_an_argument_that_the_model_made_up_is_still_refused(client: Client, cache: int) -> None:
    ran: list[Basket] = []

    def pack(asked: Basket) -> str:
        ran.append(asked)
        return "packed"

    app = shop(ToolContract("pack", "Pack.", Basket), pack, ARGS | {"gift": True})
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("shop", "go")
        await handle.result()
        outcome, text = await only(handle)
    assert (outcome, "gift" in text, ran) == ("retried", True, [])


def test_two_contracts_of_one_name_are_refused() -> None:
    one, other = ToolContract("pack", "Pack.", Basket), ToolContract("pack", "Pack anything.", Open)
    with pytest.raises(DeclarationError, match=r"ContractToolset 'shop': \['pack'\] name more than one contract"):
        ContractToolset([one, other], id="shop")


async def test_an_error_whose_text_isnt_utf8_ends_the_run_as_any(client: Client, cache: int) -> None:
    def pack(asked: Basket) -> str:
        raise ApplicationError("half \ud800", "detail", type="Half\ud800", non_retryable=True)

    app = shop(ToolContract("pack", "Pack.", Basket), pack, ARGS)
    async with working(client, app, cache=cache) as runs:
        failure = await failure_of(await runs.start("shop", "go"))
    assert (failure.type, failure.message, list(failure.details)) == ("Half\\ud800", "half \\ud800", ["detail"])


async def test_such_an_error_that_may_be_repeated_is_told(
    client: Client, cache: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "temporalio.activity")  # pytest-xdist can't send such a text on
    ran: list[int] = []

    def pack(asked: Basket) -> str:
        ran.append(1)
        raise ApplicationError("half \ud800", type="Half\ud800")

    app = shop(ToolContract("pack", "Pack.", Basket), pack, ARGS, effect="safe", attempts=2, backoff=0.1)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("shop", "go")
        await handle.result()
        assert await only(handle) == ("failed", "The tool failed with Half\\ud800.")
    assert len(ran) == 2
