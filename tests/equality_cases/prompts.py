"""Prompts, instructions, settings and models."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import BinaryContent, DocumentUrl, ImageUrl, TextContent
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.settings import ModelSettings

from tests.equality_cases.base import Case, Recording, case, simple
from tests.equality_cases.tools import PIXEL


def one() -> int:
    """One."""
    return 1


@case
def prompt_system_static_and_dynamic() -> Case:
    case = simple({"one": {}}, "done", tools=[one], system_prompt=["First.", "Second."])

    @case.agent.system_prompt
    def third() -> str:
        return "Third."

    @case.agent.system_prompt(dynamic=True)
    async def fourth(ctx: RunContext[Any]) -> str:
        return f"Prompt {ctx.prompt}, step {ctx.run_step}."

    return case


@case
def prompt_instructions_static_and_dynamic() -> Case:
    case = simple({"one": {}}, "done", tools=[one], instructions=["First.", lambda: "Second."])

    @case.agent.instructions
    def third(ctx: RunContext[Any]) -> str:
        return f"Step {ctx.run_step} of {ctx.prompt}, {len(ctx.messages)} messages, {ctx.usage.requests} requests."

    return case


@case
def prompt_system_and_instructions() -> Case:
    return simple({"one": {}}, "done", tools=[one], system_prompt="System.", instructions="Instructions.")


@case
def prompt_settings_static() -> Case:
    return simple({"one": {}}, "done", tools=[one], model_settings={"temperature": 0.1, "max_tokens": 7})


@case
def prompt_settings_callable() -> Case:
    def settings(ctx: RunContext[Any]) -> ModelSettings:
        return ModelSettings(temperature=float(ctx.run_step), seed=len(ctx.messages))

    return simple({"one": {}}, "done", tools=[one], model_settings=settings)


@case
def prompt_settings_thinking_effort_changes() -> Case:
    def settings(ctx: RunContext[Any]) -> ModelSettings:
        return ModelSettings(thinking="low" if ctx.run_step < 2 else "high")

    return simple({"one": {}}, {"one": {}}, "done", tools=[one], model_settings=settings)


@case
def prompt_settings_of_the_model() -> Case:
    script = Recording({"one": {}}, "done", settings=ModelSettings(temperature=0.3, top_p=0.5))
    agent = Agent(script.model, name="agent", tools=[one], model_settings={"top_p": 0.9})
    return Case(agent=agent, scripts=[script])


@case
def prompt_settings_as_tools_see_them() -> Case:
    saw: list[Any] = []

    def look(ctx: RunContext[Any]) -> str:
        saw.append({name: value for name, value in (ctx.model_settings or {}).items() if name != "max_retries"})
        return "looked"

    return simple({"look": {}}, "done", saw=saw, tools=[look], model_settings={"temperature": 0.1})


@case
def prompt_metadata_as_tools_see_it() -> Case:
    saw: list[Any] = []

    def look(ctx: RunContext[Any]) -> str:
        saw.append(ctx.metadata)
        return "looked"

    return simple({"look": {}}, "done", saw=saw, tools=[look], metadata={"team": "x"})


@case
def prompt_multimodal() -> Case:
    prompt: list[Any] = [
        "Look at ",
        ImageUrl(url="https://example.com/a.png", vendor_metadata={"detail": "high"}),
        PIXEL,
        DocumentUrl(url="https://example.com/a.pdf"),
        BinaryContent(data=b"%PDF-1.4 \xff", media_type="application/pdf", identifier="doc-1"),
        TextContent(content="more", metadata={"page": 2}),
    ]
    return simple({"one": {}}, "done", tools=[one], prompt=prompt)


@case
def prompt_multimodal_as_tools_see_it() -> Case:
    saw: list[Any] = []

    def look(ctx: RunContext[Any]) -> str:
        saw.append(ctx.prompt)
        return "looked"

    return simple(
        {"look": {}}, "done", saw=saw, tools=[look], prompt=["a", ImageUrl(url="https://example.com/a.png"), PIXEL]
    )


@case
def prompt_empty_text() -> Case:
    return simple("done", prompt="", instructions="Say done.")


@case
def model_chosen_by_key() -> Case:
    own, cheap = Recording("own"), Recording({"one": {}}, "cheap")
    return Case(
        agent=Agent(own.model, name="agent", tools=[one]),
        scripts=[own, cheap],
        durable={"models": {"cheap": cheap.model}},
        request={"model": "cheap"},
    )


@case
def model_of_its_own_is_absent() -> Case:
    cheap = Recording("cheap")
    return Case(
        agent=Agent(None, name="agent"),
        scripts=[cheap],
        durable={"models": {"cheap": cheap.model}},
        request={"model": "cheap"},
    )


@case
def model_fallback_after_an_error() -> Case:
    def broken(*_: Any) -> Any:
        raise ModelHTTPError(500, "broken")

    first, second = Recording(broken, broken), Recording({"one": {}}, "done")
    agent = Agent(FallbackModel(first.model, second.model), name="agent", tools=[one])
    return Case(agent=agent, scripts=[first, second])
