"""A cashier whose refunds wait for a person; `perdure worker benchmarks.cashier:app` serves it.

A run asks for the gated call, then, if the prompt wants a receipt, for one that needs nobody, and then it answers. Each
tool notes when it starts, in the file that the environment variable `NOTES` names.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from perdure import App, Approval, DurableAgent, ToolPolicy, current_call

AGENT = "cashier"
NOTES = "PERDURE_BENCH_NOTES"
GATED = "refund"
PLAIN = "receipt"
PROMPT = "Refund order A-1004."
PROMPT_WITH_RECEIPT = f"{PROMPT} Write a receipt."


@dataclass(frozen=True)
class Note:
    """A tool has started."""

    tool: str
    run: str
    """The workflow id."""
    at: float
    """Seconds since the epoch."""


def read_notes(file: Path) -> list[Note]:
    """Every start of a tool, in order."""
    rows = (line.split() for line in file.read_text().splitlines())
    return [Note(tool, run, float(at)) for tool, run, at in rows]


async def refund(order: str, cents: int) -> str:
    """Pay money back."""
    _note(GATED)
    return f"refunded {cents} for {order}"


async def receipt(order: str) -> str:
    """Write a receipt."""
    _note(PLAIN)
    return f"receipt of {order}"


def _note(tool: str) -> None:
    at = time.time()
    with Path(os.environ[NOTES]).open("a") as file:
        file.write(f"{tool} {current_call().workflow_id} {at!r}\n")


def _script(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    calls = [ToolCallPart(GATED, {"order": "A-1004", "cents": 4200})]
    if _prompt(messages[0]) == PROMPT_WITH_RECEIPT:
        calls.append(ToolCallPart(PLAIN, {"order": "A-1004"}))
    taken = sum(isinstance(message, ModelResponse) for message in messages)
    return ModelResponse([calls[taken] if taken < len(calls) else TextPart("done")])


def _prompt(first: ModelMessage) -> object:
    assert isinstance(first, ModelRequest)
    (prompt,) = (part.content for part in first.parts if isinstance(part, UserPromptPart))
    return prompt


def _build() -> App:
    agent = Agent(
        FunctionModel(_script, model_name="scripted"),
        name=AGENT,
        deps_type=type(None),
        instructions="Pay back what is asked for.",
        toolsets=[FunctionToolset[None]([refund, receipt], id="till")],
    )
    return App(agents=[DurableAgent(agent, policies={GATED: ToolPolicy(approval=Approval())})])


app = _build()
