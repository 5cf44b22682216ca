"""The support agent: what it knows, what it may do, what it answers."""

import asyncio
import os
from dataclasses import dataclass

from pydantic_ai import Agent, FunctionToolset, ModelRetry, RunContext

from .answer import Answer
from .model import model
from .store import Order, OrderNotFound, Refund, RefundRefused, Store

INSTRUCTIONS = """\
You answer customers of a small shop. Look an order up before you say anything about it; without an order number,
search by e-mail address, name or item. Amounts are in cents. Refund only what the customer asks for, never guess
between two orders, and leave a note on each order you refund."""


@dataclass(frozen=True)
class Deps:
    store: Store


orders = FunctionToolset[Deps](id="orders", max_retries=2, require_parameter_descriptions=True)


@orders.tool
async def lookup_order(ctx: RunContext[Deps], order_id: str) -> Order:
    """Everything known about one order.

    Args:
        order_id: The order number, such as A-1004.
    """
    try:
        order = await asyncio.to_thread(ctx.deps.store.find_order, order_id)
    except OrderNotFound as error:
        raise ModelRetry(str(error)) from error
    await _answer_slowly()
    return order


@orders.tool
async def search_orders(ctx: RunContext[Deps], query: str) -> list[Order]:
    """Orders of a customer or with an item, newest first.

    Args:
        query: Part of the customer's e-mail address or name, or of an item's name.
    """
    found = await asyncio.to_thread(ctx.deps.store.search_orders, query)
    await _answer_slowly()
    return found


@orders.tool
async def add_note(ctx: RunContext[Deps], order_id: str, text: str) -> str:
    """Leave a note on an order for colleagues.

    Args:
        order_id: The order number, such as A-1004.
        text: What colleagues should know.
    """
    key = _idempotency_key() or f"{order_id}:{text}"
    try:
        await asyncio.to_thread(ctx.deps.store.add_note, order_id, text, key)
    except OrderNotFound as error:
        raise ModelRetry(str(error)) from error
    await _answer_slowly()
    return "noted"


async def refundable(ctx: RunContext[Deps], order_id: str, cents: int) -> None:
    """Refuse what the shop can't pay back, before anybody is asked about it and when somebody changes the amount."""
    try:
        await asyncio.to_thread(ctx.deps.store.check_refund, order_id, cents)
    except (OrderNotFound, RefundRefused) as error:
        raise ModelRetry(str(error)) from error


@orders.tool(args_validator=refundable)
async def refund(ctx: RunContext[Deps], order_id: str, cents: int) -> Refund:
    """Pay money back to the customer, at most what is left of the payment.

    Args:
        order_id: The order number, such as A-1004.
        cents: The amount in cents.
    """
    key = _idempotency_key() or f"{order_id}:{cents}"
    try:
        done = await asyncio.to_thread(ctx.deps.store.refund, order_id, cents, key)
    except (OrderNotFound, RefundRefused) as error:
        raise ModelRetry(str(error)) from error
    await _answer_slowly()
    return done


def _idempotency_key() -> str | None:
    """The key of this tool call, the same in each attempt; None when the agent runs without perdure."""
    try:
        from perdure import current_call

        return current_call().idempotency_key
    except (ImportError, LookupError):
        return None


async def _answer_slowly() -> None:
    """Wait `PERDURE_SUPPORT_TOOL_DELAY` seconds after the effect: a worker killed here has paid and not yet said so."""
    await asyncio.sleep(float(os.environ.get("PERDURE_SUPPORT_TOOL_DELAY", "0")))


support = Agent(model, name="support", deps_type=Deps, instructions=INSTRUCTIONS, toolsets=[orders], output_type=Answer)
