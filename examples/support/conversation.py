"""What the offline model understands of a conversation: the customer's latest message and the tools' answers to it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from .store import Item, Order, Refund

ORDER_ID = re.compile(r"\b[A-Za-z]-\d{4}\b")
EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
PERSON = re.compile(r"(?<=[a-z] )[A-Z][a-z]+ [A-Z][a-z]+\b")
MONEY = re.compile(r"\$\s?(\d+(?:\.\d{2})?)")
NOTE = re.compile(r"\bnote\b[^:]*:\s*(.+)", re.IGNORECASE | re.DOTALL)
REFUND = re.compile(r"\b(?:refund|money back)\b", re.IGNORECASE)
NOT_ASKED = re.compile(
    r"\s*(?:has|have|was|were|did|is|are|when|where|what|why|how)\b|.*\b(?:no|not|don't|never)\b", re.IGNORECASE
)
CLAUSE_END = re.compile(r"[.,;!?\n]+")
BACK_REFERENCE = re.compile(r"\b(?:it|that order|this order|that one)\b", re.IGNORECASE)

ORDERS = TypeAdapter(list[Order])


@dataclass(frozen=True)
class Result:
    """A tool's answer."""

    tool: str
    args: dict[str, Any]
    ok: bool
    text: str
    """What the model reads: JSON if `ok`, else the reason."""
    denied: bool = False
    """A person refused the call, or nobody decided it in time."""


@dataclass(frozen=True)
class Turn:
    prompt: str
    results: Sequence[Result]
    """The tools' answers since the prompt."""
    last_order_id: str | None
    """The order last spoken of before the prompt."""
    calls_so_far: int
    """Tool calls in the whole conversation."""

    @property
    def order_ids(self) -> list[str]:
        """The orders the prompt names, or points back to."""
        if named := ORDER_ID.findall(self.prompt):
            return list(dict.fromkeys(order_id.upper() for order_id in named))
        points_back = self.last_order_id and not self.customer and BACK_REFERENCE.search(self.prompt)
        return [self.last_order_id] if self.last_order_id and points_back else []

    @property
    def customer(self) -> str | None:
        """The customer's e-mail address or name, as far as the prompt says."""
        found = EMAIL.search(self.prompt) or PERSON.search(self.prompt)
        return found.group() if found else None

    @property
    def wants_refund(self) -> bool:
        """Whether the prompt asks for a refund, not about one."""
        clauses = CLAUSE_END.split(self.prompt)
        return any(REFUND.search(clause) and not NOT_ASKED.match(clause) for clause in clauses)

    @property
    def cents(self) -> int | None:
        """The amount the prompt names."""
        money = MONEY.search(self.prompt)
        return int(Decimal(money.group(1)) * 100) if money else None

    @property
    def note(self) -> str | None:
        """The note the prompt dictates."""
        found = NOTE.search(self.prompt)
        return found.group(1).strip() if found else None

    def named_items(self, order: Order) -> list[Item]:
        """The items of the order the prompt speaks of."""
        words = set(re.findall(r"[a-z]{3,}", EMAIL.sub("", self.prompt).lower()))
        return [item for item in order.items if words & set(re.findall(r"[a-z]{3,}", item.name.lower()))]

    def of(self, tool: str, *, ok: bool | None = None) -> list[Result]:
        """The tool's answers; only the good or the bad ones if `ok` is given."""
        return [result for result in self.results if result.tool == tool and ok in (None, result.ok)]

    def tried(self, tool: str) -> set[str]:
        """The orders the tool was called for."""
        return {str(result.args.get("order_id")) for result in self.of(tool)}

    @property
    def orders(self) -> list[Order]:
        """The orders looked up."""
        return [Order.model_validate_json(result.text) for result in self.of("lookup_order", ok=True)]

    @property
    def hits(self) -> list[Order]:
        """The orders found by searching; only those with an item the prompt speaks of, if there are any."""
        # An empty list reaches a model as an empty text.
        texts = [result.text for result in self.of("search_orders", ok=True) if result.text]
        found = [order for text in texts for order in ORDERS.validate_json(text)]
        return [order for order in found if self.named_items(order)] or found

    @property
    def refunds(self) -> list[Refund]:
        return [Refund.model_validate_json(result.text) for result in self.of("refund", ok=True)]


def read(messages: Sequence[ModelMessage]) -> Turn:
    """The latest turn of the conversation."""
    start = max((at for at, message in enumerate(messages) if _prompt(message)), default=0)
    calls = [part for message in messages for part in _calls(message)]
    by_id = {call.tool_call_id: call for call in calls}
    before = [text for message in messages[:start] for text in _texts(message)]
    spoken_of = ORDER_ID.findall(" ".join(before))
    return Turn(
        prompt=_prompt(messages[start]),
        results=[_result(part, by_id[part.tool_call_id]) for message in messages[start:] for part in _returns(message)],
        last_order_id=spoken_of[-1].upper() if spoken_of else None,
        calls_so_far=len(calls),
    )


def _prompt(message: ModelMessage) -> str:
    if not isinstance(message, ModelRequest):
        return ""
    contents = [part.content for part in message.parts if isinstance(part, UserPromptPart)]
    pieces = [piece for content in contents for piece in ([content] if isinstance(content, str) else content)]
    texts = [piece.content if isinstance(piece, TextContent) else piece for piece in pieces]
    return " ".join(text for text in texts if isinstance(text, str))


def _calls(message: ModelMessage) -> Iterator[ToolCallPart]:
    if isinstance(message, ModelResponse):
        yield from message.tool_calls


def _returns(message: ModelMessage) -> Iterator[ToolReturnPart]:
    if isinstance(message, ModelRequest):
        yield from (part for part in message.parts if isinstance(part, ToolReturnPart))


def _texts(message: ModelMessage) -> Iterator[str]:
    yield _prompt(message)
    yield from (call.args_as_json_str() for call in _calls(message))


def _result(part: ToolReturnPart, call: ToolCallPart) -> Result:
    text = part.model_response_str(wrap_if_error=False)
    ok, denied = part.outcome == "success", part.outcome == "denied"
    return Result(part.tool_name, call.args_as_dict(), ok, text, denied)
