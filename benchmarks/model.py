"""The scripted agent that every peer runs: one call of `fetch` per step, then an answer."""

import asyncio
from collections.abc import Sequence

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

PAGE = 1024
"""Characters that one call of `fetch` returns."""


def prompt_for(steps: int) -> str:
    """The prompt that makes the scripted model take `steps` steps; if negative, wait in the first for ever."""
    return f"go {steps}"


def page(n: int) -> str:
    """Text of exactly one kilobyte, different for each `n` so that nothing can be shared or packed."""
    return f"page {n}: ".ljust(PAGE, chr(ord("a") + n % 26))


async def fetch(n: int) -> str:
    """Fetch one page of text; a negative one never comes."""
    if n < 0:
        await asyncio.Event().wait()
    return page(n)


def build_agent(name: str, capabilities: Sequence[AbstractCapability[None]] = ()) -> Agent[None, str]:
    """The scripted agent."""
    pages = FunctionToolset[None](id="pages")
    pages.add_function(fetch)
    return Agent(
        FunctionModel(_script, model_name="scripted"),
        name=name,
        deps_type=type(None),
        instructions="Fetch every page, then answer.",
        toolsets=[pages],
        capabilities=list(capabilities),
    )


def _script(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    taken = sum(isinstance(message, ModelResponse) for message in messages)
    steps = _steps_asked_for(messages[0])
    if steps < 0 or taken < steps:
        return ModelResponse([ToolCallPart("fetch", {"n": min(taken, steps)}, tool_call_id=f"call-{taken}")])
    return ModelResponse([TextPart("done")])


def _steps_asked_for(first: ModelMessage) -> int:
    assert isinstance(first, ModelRequest)
    prompts = [part.content for part in first.parts if isinstance(part, UserPromptPart)]
    return int(str(prompts[0]).split()[-1])
