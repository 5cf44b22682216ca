"""The contract of an order, and a function that agrees with it."""

from __future__ import annotations

from pydantic import BaseModel

from perdure.toolsets.contract import ToolContract


class Order(BaseModel):
    order_id: str
    count: int = 1
    note: str | None = None


class Receipt(BaseModel):
    cents: int


ORDER = ToolContract("order", "Order something.", Order, Receipt, version="2")


def fields(order_id: str, count: int, note: str | None) -> Receipt:
    raise NotImplementedError
