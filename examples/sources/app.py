"""Two agents with these tools. `PERDURE_RATES` is the address of the HTTP server, `PERDURE_BOOK` the file of orders."""

import os
from collections.abc import Callable
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from perdure import App, Approval, DurableAgent, ToolPolicy
from perdure.toolsets.agent import agent_tool

from .tools import discounts, orders, prices, rates, shelf, stock, suppliers
from .warehouse import QUEUE

Turn = list[ToolCallPart] | str | Callable[[list[ModelMessage]], str]


def answers(messages: list[ModelMessage]) -> str:
    """The results of all tools, as the last text."""
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    return "; ".join(f"{part.tool_name}: {part.model_response_str()}" for part in parts)


def scripted(name: str, *turns: Turn) -> FunctionModel:
    """A model without key and network: it answers its turns, one after the other."""

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = turns[sum(isinstance(message, ModelResponse) for message in messages)]
        if isinstance(turn, str):
            return ModelResponse(parts=[TextPart(turn)])
        return ModelResponse(parts=[TextPart(turn(messages))] if callable(turn) else turn)

    return FunctionModel(respond, model_name=name)


def build(book: Path, rates_url: str, warehouse_queue: str = QUEUE) -> App:
    """The app: the desk knows six sources itself, and the buyer is its seventh."""
    desk = Agent(
        scripted(
            "offline-desk",
            [
                ToolCallPart("on_the_shelf", {"item": "keyboard"}, "shelf"),
                ToolCallPart("price_of", {"item": "keyboard"}, "price"),
                ToolCallPart("supplier_of", {"item": "keyboard"}, "supplier"),
                ToolCallPart("rate", {"currency": "SEK"}, "rate"),
                ToolCallPart("discount", {"count": 3}, "discount"),
            ],
            [
                ToolCallPart("reserve", {"item": "keyboard", "count": 1}, "reserve"),
                ToolCallPart("ask_buyer", {"prompt": "Buy two keyboards from Acme."}, "buyer"),
            ],
            answers,
        ),
        name="desk",
        toolsets=[shelf, prices, suppliers(), rates(rates_url), discounts, stock(warehouse_queue)],
        tools=[agent_tool("buyer", description="Let the buyer order what is missing.")],
    )
    buyer = Agent(
        scripted(
            "offline-buyer",
            [ToolCallPart("place_order", {"item": "keyboard", "count": 2, "supplier": "Acme"}, "order")],
            answers,
        ),
        name="buyer",
        toolsets=[orders(book)],
    )
    looks = ToolPolicy(effect="safe")
    return App(
        agents=[
            DurableAgent(
                desk, policies=dict.fromkeys(("on_the_shelf", "price_of", "supplier_of", "rate", "discount"), looks)
            ),
            DurableAgent(
                buyer, policies={"place_order": ToolPolicy(effect="idempotent", approval=Approval(approvers=["ann"]))}
            ),
        ]
    )


app = build(
    Path(os.environ.get("PERDURE_BOOK", "orders.jsonl")), os.environ.get("PERDURE_RATES", "http://127.0.0.1:8123/mcp")
)
