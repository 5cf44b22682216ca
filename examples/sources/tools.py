"""The tools, each as its source has it."""

import json
import sys
from pathlib import Path

from fastmcp.client.transports import StdioTransport
from pydantic import BaseModel, Field
from pydantic_ai import FunctionToolset
from smolagents import Tool  # pyright: ignore[reportMissingTypeStubs]

from perdure import current_call
from perdure.toolsets.contract import ToolContract
from perdure.toolsets.contract_toolset import ContractToolset
from perdure.toolsets.mcp import MCPServer
from perdure.toolsets.smolagents import SmolagentsToolset
from perdure.toolsets.temporal import TemporalTools

from .warehouse import QUEUE

SHELF = {"keyboard": 1, "headphones": 0}

shelf = FunctionToolset[object](id="shelf")


@shelf.tool_plain
def on_the_shelf(item: str) -> int:
    """How many of an item are on the shelf."""
    return SHELF.get(item, 0)


class Item(BaseModel):
    item: str


class Price(BaseModel):
    cents: int = Field(ge=0)


price_of = ToolContract("price_of", "What one of an item costs, in euro cents.", Item, Price, version="1")
prices = ContractToolset(id="prices")


@prices.handle(price_of)
def look_up_price(asked: Item) -> Price:
    return Price(cents={"keyboard": 9_900, "headphones": 14_900}.get(asked.item, 0))


class Discount(Tool):
    name = "discount"
    description = "The discount for so many of an item, in percent."
    inputs = {"count": {"type": "integer", "description": "How many are bought."}}
    output_type = "integer"

    def forward(self, count: int) -> int:
        return 10 if count >= 3 else 0


discounts = SmolagentsToolset([Discount()], id="discounts")


class Order(BaseModel):
    item: str
    count: int


def stock(task_queue: str = QUEUE) -> TemporalTools:
    tools = TemporalTools("stock", task_queue=task_queue)
    tools.activity("ReserveStock", name="reserve", description="Reserve some of an item.", input_model=Order)
    return tools


def suppliers() -> MCPServer:
    return MCPServer(
        lambda: StdioTransport(sys.executable, ["-m", "examples.sources.suppliers"]), id="suppliers", connect_timeout=60
    )


def rates(url: str) -> MCPServer:
    return MCPServer(url, id="rates", connect_timeout=60)


def orders(book: Path) -> FunctionToolset[object]:
    """What the buyer may do. Each order is a line in the book."""
    tools = FunctionToolset[object](id="orders")

    @tools.tool_plain
    def place_order(item: str, count: int, supplier: str) -> str:
        """Order from a supplier."""
        line = {"item": item, "count": count, "supplier": supplier, "key": current_call().idempotency_key}
        with book.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return f"ordered {count} {item} from {supplier}"

    return tools
