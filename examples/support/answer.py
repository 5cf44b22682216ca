"""What a run of the support agent ends with."""

from pydantic import BaseModel


class Answer(BaseModel):
    """The answer to the customer."""

    reply: str
    """What the customer reads."""
    order_id: str | None
    """The order it is about, if it is about exactly one."""
    refunded_cents: int
    """What was paid back in this turn; 0 if nothing was."""
