"""Tools by contract, as they run: arguments, results, what breaks a contract, and who serves it."""

from __future__ import annotations

import asyncio
import inspect
import threading
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import RunContext
from pydantic_ai.messages import ModelResponsePart, ToolCallPart, ToolReturn
from temporalio.client import Client

from perdure import current_call
from perdure.toolsets.contract import ToolContract
from perdure.toolsets.contract_toolset import ContractToolset
from tests.deciding import answers, pending, update
from tests.harness import activities, failure_of, until, working
from tests.refunds import CALL, REFUND, Order, Refund, shop
from tests.scripts import Script


def served(function: Any) -> ContractToolset:
    """A toolset in which `function` serves the contract."""
    toolset = ContractToolset([REFUND], id="shop")
    toolset.handle(REFUND, function)
    return toolset


def by_fields(order_id: str, since: date, note: str | None) -> Refund:
    return Refund(cents=len(order_id), day=since)


def by_model(order: Order) -> dict[str, Any]:
    return {"cents": str(len(order.order_id)), "day": order.since.isoformat()}


async def with_context(ctx: RunContext[Any], order: Order) -> Refund:
    assert ctx.tool_name == "refund"
    assert current_call().attempt == 1
    return Refund(cents=len(order.order_id), day=order.since)


async def any_fields(**fields: Any) -> ToolReturn:
    assert threading.current_thread() is threading.main_thread()
    return ToolReturn(Refund(cents=3, day=fields["since"]), metadata={"seen": sorted(fields)})


@pytest.mark.parametrize(
    "handler", [by_fields, by_model, with_context, any_fields], ids=lambda handler: handler.__name__
)
async def test_s4_27_a_result_is_validated_before_history_has_it(client: Client, cache: int, handler: Any) -> None:
    async with working(client, shop(Script(CALL, "done"), served(handler)), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        assert (await handle.result())["output"] == "done"
        assert (await answers(handle))["c0.0"] == ("success", '{"cents":3,"day":"2026-01-01"}')


async def test_s3_13_each_kind_of_wrong_argument_is_one_retried_answer(client: Client, cache: int) -> None:
    wrong = [{"order_id": 7}, {"note": "x"}, {"order_id": "A-1", "cents": 1}, {"order_id": "A-1", "from": "soon"}]
    calls: list[ModelResponsePart] = [ToolCallPart("refund", args) for args in [*wrong, "[1]", "{"]]
    async with working(client, shop(Script(calls, CALL, "done"), served(by_fields)), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        await handle.result()
        found = await answers(handle)
        assert [found[f"c0.{index}"][0] for index in range(len(calls))] == ["retried"] * len(calls)
        assert "order_id" in found["c0.1"][1]
        assert "Extra inputs are not permitted" in found["c0.2"][1]
        assert found["c1.0"][0] == "success"
        assert [name for name in await activities(handle) if name.startswith("tool:")] == ["tool:refund"]


async def test_what_is_planned_is_what_was_validated(client: Client) -> None:
    script = Script({"refund": {"order_id": "A-1", "from": "2026-02-03"}}, "done")
    seen: list[Any] = []
    toolset = ContractToolset(id="shop")

    @toolset.handle(REFUND, requires_approval=True)
    def refund(order: Order) -> Refund:  # pyright: ignore[reportUnusedFunction]
        seen.append(order.since)
        return Refund(cents=1, day=order.since)

    async with working(client, shop(script, toolset)) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        assert row["args"] == {"order_id": "A-1", "from": "2026-02-03", "note": None}
        await update(handle, "approve", {"call": row["call"]})
        await handle.result()
    assert seen == [date(2026, 2, 3)]


def wrong_type(order: Order) -> Any:
    return {"cents": "many", "day": "2026-01-01"}


def wrong_value(order: Order) -> Refund:
    return Refund.model_construct(cents=-1, day=date(2026, 1, 1))


def wrong_kind(order: Order) -> Any:
    return threading.Lock()


async def wrong_wrapped(order: Order) -> ToolReturn:
    return ToolReturn({"cents": 1})


@pytest.mark.parametrize(
    "handler", [wrong_type, wrong_value, wrong_kind, wrong_wrapped], ids=lambda handler: handler.__name__
)
@pytest.mark.parametrize("effect", ["unsafe", "safe"])
async def test_s4_24_a_broken_contract_ends_the_run(client: Client, cache: int, effect: str, handler: Any) -> None:
    tried: list[str] = []

    def counted(order: Order) -> Any:
        tried.append(order.order_id)
        return handler(order)

    async def counted_async(order: Order) -> Any:
        tried.append(order.order_id)
        return await handler(order)

    script = Script(CALL, "never")
    toolset = served(counted_async if inspect.iscoroutinefunction(handler) else counted)
    async with working(client, shop(script, toolset, effect=effect), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        failure = await failure_of(handle)
        ran = await activities(handle)
    assert (failure.type, failure.non_retryable) == ("ToolContractViolation", True)
    assert "what serves tool 'refund' broke its contract 1: the result isn't Refund: " in failure.message
    assert (tried, ran.count("model_request"), ran.count("tool:refund")) == (["A-1"], 1, 1)


class Awkward(BaseModel):
    ctx: str
    args: str
    self: str


def joined(**fields: str) -> str:
    return " ".join(fields.values())


@pytest.mark.parametrize("outside", [False, True])
async def test_arguments_may_have_any_name(client: Client, outside: bool) -> None:
    contract, toolset = ToolContract("refund", "Refund.", Awkward, str), ContractToolset(id="shop")
    if outside:
        toolset.external(contract)
    else:
        toolset.handle(contract, joined)
    script = Script({"refund": {"ctx": "a", "args": "b", "self": "c"}}, "done")
    async with working(client, shop(script, toolset)) as runs:
        handle = await runs.start("shop", "go")
        if outside:
            (row,) = await pending(handle, 1)
            await update(handle, "complete", {"call": row["call"], "result": "a b c"})
        await handle.result()
        assert (await answers(handle))["c0.0"] == ("success", "a b c")


async def test_a_running_contract_keeps_to_the_tools_timeout(client: Client) -> None:
    toolset = ContractToolset(id="shop")
    began: list[str] = []

    @toolset.handle(REFUND, timeout=0.2)
    async def hang(order: Order) -> Refund:  # pyright: ignore[reportUnusedFunction]
        began.append(order.order_id)
        await asyncio.Event().wait()
        raise AssertionError

    async with working(client, shop(Script(CALL, "done"), toolset)) as runs:
        handle = await runs.start("shop", "go")
        await until(lambda: bool(began))
        await handle.result()
        assert (await answers(handle))["c0.0"] == ("retried", "Timed out after 0.2 seconds.")
