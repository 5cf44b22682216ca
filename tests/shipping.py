"""Signatures of the activities of `tests.remote`, as those who call them declare them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Camel(BaseModel):
    """Fields in camel case, as most other languages write them."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", validate_by_name=True, serialize_by_alias=True)


class Order(Camel):
    sku: str
    quantity: int = 1
    ship_by: str = "sea"


async def quote_shipping(city: str, grams: int, express: bool = False) -> None:
    """What shipping costs.

    Args:
        city: Where to.
        grams: How heavy.
        express: Whether it has to be there tomorrow.
    """


async def ping() -> None:
    """Whether anybody is there."""
