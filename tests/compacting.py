"""Agents that are compacted, and the models of tests about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import (
    CompactionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from perdure import App, DurableAgent
from perdure.contracts import Json
from tests.harness import Handle, check_answers
from tests.scripts import Script

PER_MESSAGE = 100
"""Tokens that a message takes, by what these models say."""


def counting(last: int, tool: Callable[[int], dict[str, Any]] = lambda n: {"look": {"n": n}}) -> Script:
    """A model that makes calls 1 to `last`, one a step, and then answers. It reads in its last call where it is, so
    that it does the same whether or not older messages are there."""

    def turn(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        calls = [part for message in messages for part in message.parts if isinstance(part, ToolCallPart)]
        n = 1 + (int(calls[-1].tool_call_id.removeprefix("id")) if calls else 0)
        parts: list[Any] = [TextPart("done")]
        if n <= last:
            parts = [ToolCallPart(name, args, tool_call_id=f"id{n}") for name, args in tool(n).items()]
        usage = RequestUsage(input_tokens=PER_MESSAGE * len(messages), output_tokens=1)
        return ModelResponse(parts=parts, usage=usage)

    return Script(*[turn] * (last + 1))


class Summarizer:
    """A model that summarises by naming the results it saw, and fails as often as it is told to."""

    def __init__(self, *errors: Exception | None) -> None:
        self.asked: list[str] = []
        self.instructions: list[str] = []
        self._errors = list(errors)

    @property
    def model(self) -> FunctionModel:
        return FunctionModel(self._answer)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        prompt = messages[-1].parts[-1]
        assert isinstance(prompt, UserPromptPart)
        assert isinstance(prompt.content, str)
        self.asked.append(prompt.content)
        self.instructions.append(info.instructions or "")
        if self._errors and (error := self._errors.pop(0)) is not None:
            raise error
        seen = [word for word in prompt.content.split() if word.startswith("saw-")]
        return ModelResponse(
            parts=[TextPart(f"Summary: {' '.join(seen)}")], usage=RequestUsage(input_tokens=7, output_tokens=3)
        )


def app(script: Script, summarizer: Summarizer | None = None, *, ran: list[int] | None = None, **options: Any) -> App:
    """One agent with a tool; above 450 tokens, that is five messages, it is compacted to its last response."""
    tools = FunctionToolset[object](id="shop")

    @tools.tool_plain
    def look(n: int) -> str:
        """Look at n."""
        if ran is not None:
            ran.append(n)
        return f"saw-{n}"

    agent_options: dict[str, Any] = {
        name: options.pop(name) for name in ("system_prompt", "capabilities") if name in options
    }
    toolsets = [tools, *options.pop("toolsets", [])]
    models = {"short": summarizer.model} if summarizer else {}
    settings: dict[str, Any] = {"compact_above": 450, "compact_keep": 0, "models": models, **options}
    settings |= {"compact_with": "short"} if summarizer else {}
    return App(agents=[DurableAgent(Agent(script.model, name="shop", toolsets=toolsets, **agent_options), **settings)])


async def entries_of(handle: Handle) -> list[Json]:
    page = await handle.query("transcript")
    assert page["total"] == len(page["entries"])
    return page["entries"]


def check_requests(script: Script) -> None:
    """Each request that was sent is one that every provider takes."""
    for messages in script.requests:
        assert isinstance(messages[0], ModelRequest)
        assert isinstance(messages[-1], ModelRequest)
        check_answers(messages)


def summaries(messages: list[ModelMessage]) -> list[str | None]:
    return [part.content for message in messages for part in message.parts if isinstance(part, CompactionPart)]


def compacted(summarizer: Summarizer) -> dict[str, Any]:
    """Options of an agent whose older messages give way to a summary above 450 tokens."""
    return {"compact_above": 450, "compact_keep": 0, "models": {"short": summarizer.model}, "compact_with": "short"}
