"""What the offline model does next: each rule looks at the turn and returns a step, or leaves it to the next rule."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .answer import Answer
from .conversation import Result, Turn
from .store import Order, Refund

MOST_LOOKUPS = 3
"""Of a customer's orders, how many are looked up for a general question."""
NO_REASON = ("The call was denied.", "The tool call was denied.")
"""What a model reads of a denial without a reason: of perdure, of Pydantic AI."""
NOBODY = "No decision came in time"
"""How perdure begins what it says of a call that nobody decided."""


@dataclass(frozen=True)
class Call:
    tool: str
    args: dict[str, Any]


@dataclass(frozen=True)
class Step:
    say: str
    calls: list[Call]


def look_up_named_orders(turn: Turn) -> Step | None:
    return _look_up(turn, turn.order_ids)


def search_for_customer(turn: Turn) -> Step | None:
    if turn.orders or not turn.customer or turn.of("search_orders"):
        return None
    return Step(f"Looking for orders of {turn.customer}.", [Call("search_orders", {"query": turn.customer})])


def look_up_hits(turn: Turn) -> Step | None:
    if is_ambiguous(turn):
        return None
    return _look_up(turn, [order.id for order in turn.hits[:MOST_LOOKUPS]])


def refund_orders(turn: Turn) -> Step | None:
    if not turn.wants_refund:
        return None
    amounts = {order.id: _amount(turn, order) for order in turn.orders if order.id not in turn.tried("refund")}
    calls = [Call("refund", {"order_id": id, "cents": cents}) for id, cents in amounts.items() if cents]
    return Step("Refunding what you asked for.", calls) if calls else None


def note_refunds(turn: Turn) -> Step | None:
    calls = [
        _note(refund.order_id, f"Refunded {money(refund.cents)} at the customer's request ({refund.id}).")
        for refund in turn.refunds
        if refund.order_id not in turn.tried("add_note")
    ]
    return Step("Leaving a note for my colleagues.", calls) if calls else None


def note_what_was_dictated(turn: Turn) -> Step | None:
    open_orders = [order.id for order in turn.orders if order.id not in turn.tried("add_note")]
    calls = [_note(order_id, turn.note) for order_id in open_orders] if turn.note else []
    return Step("Writing your note down.", calls) if calls else None


Rule = Callable[[Turn], Step | None]
RULES: tuple[Rule, ...] = (
    look_up_named_orders,
    search_for_customer,
    look_up_hits,
    refund_orders,
    note_refunds,
    note_what_was_dictated,
)


def next_step(turn: Turn) -> Step | Answer:
    """The first rule's step, or the answer when no rule has anything left to do."""
    return next((step for rule in RULES if (step := rule(turn))), None) or answer(turn)


def answer(turn: Turn) -> Answer:
    lines = [*_refund_lines(turn), *_order_lines(turn), *_note_lines(turn), *_missing_lines(turn)]
    return Answer(
        reply=" ".join(lines) or _what_is_missing(turn),
        order_id=turn.orders[0].id if len(turn.orders) == 1 else None,
        refunded_cents=sum(refund.cents for refund in turn.refunds),
    )


def is_ambiguous(turn: Turn) -> bool:
    """A refund was asked for, and several orders could be meant."""
    return turn.wants_refund and len(turn.hits) > 1


def money(cents: int) -> str:
    return f"${cents / 100:,.2f}"


def _look_up(turn: Turn, order_ids: list[str]) -> Step | None:
    new = [order_id for order_id in order_ids if order_id not in turn.tried("lookup_order")]
    calls = [Call("lookup_order", {"order_id": order_id}) for order_id in new]
    return Step(f"Looking up {', '.join(new)}.", calls) if calls else None


def _note(order_id: str, text: str) -> Call:
    return Call("add_note", {"order_id": order_id, "text": text})


def _amount(turn: Turn, order: Order) -> int:
    """What was asked for: an amount, else the price of the items named, else all that is left."""
    left = order.paid_cents - order.refunded_cents
    if left == 0:
        return 0
    return turn.cents or sum(item.cents for item in turn.named_items(order)) or left


def _refund_lines(turn: Turn) -> list[str]:
    return [_refunded(each) if each.ok else _not_refunded(each) for each in turn.of("refund")]


def _refunded(result: Result) -> str:
    """What was paid; where a person approved another amount than was asked for, also that."""
    refund, asked = Refund.model_validate_json(result.text), result.args["cents"]
    of = "" if refund.cents == asked else f", of the {money(asked)} you asked for"
    return f"I refunded {money(refund.cents)} for order {refund.order_id} (refund {refund.id}){of}."


def _not_refunded(result: Result) -> str:
    order_id, reason = result.args["order_id"], result.text.rstrip(".")
    if not result.denied:
        return f"I could not refund order {order_id}: {reason}."
    what = f"The refund of {money(result.args['cents'])} for order {order_id}"
    if result.text.startswith(NOBODY):
        return f"{what} was not made: nobody decided it in time. Please ask again."
    return f"{what} was not approved." if result.text in NO_REASON else f"{what} was not approved: {reason}."


def _order_lines(turn: Turn) -> list[str]:
    return [_describe(turn, order) for order in turn.orders if order.id not in turn.tried("refund")]


def _describe(turn: Turn, order: Order) -> str:
    items = ", ".join(item.name for item in order.items)
    line = f"Order {order.id} ({items}), placed on {order.placed_on:%B} {order.placed_on.day}, is {order.status}."
    if order.refunded_cents:
        line += f" {money(order.refunded_cents)} of it has been refunded."
    if turn.wants_refund:
        line += " There is nothing left to refund." if order.paid_cents else " It has not been paid."
    return line


def _note_lines(turn: Turn) -> list[str]:
    noted = [result.args["order_id"] for result in turn.of("add_note", ok=True)] if turn.note else []
    return [f"I added your note to order {order_id}." for order_id in noted]


def _missing_lines(turn: Turn) -> list[str]:
    missing = turn.of("lookup_order", ok=False)
    return [f"I'm sorry, I could not find an order {result.args['order_id']}." for result in missing]


def _what_is_missing(turn: Turn) -> str:
    if is_ambiguous(turn):
        return f"Which of your orders do you mean: {', '.join(order.id for order in turn.hits)}?"
    if turn.customer:
        return f"I'm sorry, I found no orders of {turn.customer}."
    return "Which order is it about? Please tell me its number, such as A-1004, or your e-mail address."
