"""A gate: an agent that writes, or calls tools, until it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from perdure import App, Approval, DurableAgent, ToolPolicy
from tests.harness import check_answers


def last_text(messages: list[ModelMessage]) -> Any:
    """The last thing a user said; of several in one message the last."""
    prompts = [part.content for part in messages[-1].parts if isinstance(part, UserPromptPart)]
    last = prompts[-1] if prompts else ""
    return last if isinstance(last, str) else last[-1]


class Gate:
    """A model that streams words until it is stopped, and a tool that runs until it is stopped."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.ran: list[str] = []
        self.requests: list[list[ModelMessage]] = []

    def app(self, *, approval: Approval | None = None, effect: Any = "unsafe") -> App:
        tools = FunctionToolset[None](id="tools")

        @tools.tool_plain
        async def work(n: int) -> str:
            self.ran.append(f"began {n}")
            await asyncio.sleep(60)
            return "never"

        @tools.tool_plain
        async def refund(n: int) -> str:
            self.ran.append(f"refunded {n}")
            return "refunded"

        model = FunctionModel(self.answer, stream_function=self.stream)
        policies = {"work": ToolPolicy(effect=effect), "refund": ToolPolicy(approval=approval or Approval())}
        system = "You are a gate."
        gate = DurableAgent(Agent(model, name="gate", toolsets=[tools], system_prompt=system), policies=policies)
        return App(agents=[gate])

    async def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise AssertionError("it streams")

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        self.requests.append(messages)
        check_answers(messages)
        match last_text(messages):
            case "write":
                for word in ("one ", "two ", "three "):
                    self.said.append(word)
                    yield word
                await asyncio.sleep(60)
            case "work":
                yield {0: DeltaToolCall("work", '{"n": 1}', tool_call_id="w1")}
                yield {1: DeltaToolCall("refund", '{"n": 2}', tool_call_id="r2")}
            case _:
                yield f"answered {len(self.requests)}"
