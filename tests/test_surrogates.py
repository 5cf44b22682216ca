"""Half characters in a model's answer: the run goes on with what can be carried of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.wrapper import WrapperModel
from temporalio.client import Client

from perdure import App
from perdure.activities.surrogates import joined, whole
from tests.deciding import update
from tests.harness import messages, working
from tests.reading import returns
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed, turn

HIGH, LOW = chr(0xD83D), chr(0xDE00)
SMILE = "\U0001f600"


def app(model: Model, asked: list[Any]) -> App:
    """An agent that looks something up."""

    def look(word: str) -> str:
        asked.append(word)
        return f"saw {word}"

    return App(agents=[Agent(model, name="a", tools=[look])])


async def test_an_answer_with_half_a_character_is_kept(client: Client, cache: int) -> None:
    script = Script(ModelResponse([ThinkingPart(f"hm {LOW}"), TextPart(f"so {HIGH}")]))
    async with working(client, app(script.model, []), cache=cache) as runs:
        run = await runs.start("a", "go")
        assert (await run.result())["output"] == "so \ufffd"
        (answer,) = (message for message in await messages(run) if isinstance(message, ModelResponse))
    assert [getattr(part, "content", None) for part in answer.parts] == ["hm \ufffd", "so \ufffd"]


class Halving(WrapperModel):
    """Breaks the calls of its model: `FunctionModel` itself can't count such arguments."""

    async def request(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """The response with a pair of surrogates for a plus, and half of one for a minus."""
        response = await super().request(*args, **kwargs)
        parts = [
            replace(part, args=halved(part.args)) if isinstance(part, ToolCallPart) else part for part in response.parts
        ]
        return replace(response, parts=parts)


def halved(args: Any) -> Any:
    """Arguments of the tool, as text or as an object."""
    if isinstance(args, dict):
        return {"word": halved(args["word"])}
    return args.replace("+", HIGH + LOW).replace("-", HIGH)


@pytest.mark.parametrize("args", [{"word": "+ and -"}, '{"word": "+ and -"}'], ids=["object", "text"])
async def test_arguments_with_half_a_character_are_kept(client: Client, cache: int, args: Any) -> None:
    asked: list[Any] = []
    script = Script([ToolCallPart("look", args)], "done")
    async with working(client, app(Halving(script.model), asked), cache=cache) as runs:
        run = await runs.start("a", "go")
        assert (await run.result())["output"] == "done"
        (answer,) = returns(await messages(run))
    assert asked == [f"{SMILE} and \ufffd"]
    assert answer.content == f"saw {SMILE} and \ufffd"


async def test_a_stream_that_was_cut_in_a_character_is_joined(client: Client) -> None:
    script = Script(f"so {HIGH} {LOW}{HIGH} {HIGH}{LOW}")
    async with working(client, app(script.streaming, [])) as runs:
        assert (await runs.run("a", "go"))["output"].rstrip() == f"so \ufffd \ufffd\ufffd {SMILE}"


async def test_a_stream_that_is_interrupted_in_a_character_keeps_what_came(client: Client, cache: int) -> None:
    began, asked = asyncio.Event(), list[list[ModelMessage]]()

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        asked.append(messages)
        if not began.is_set():
            yield f"so {HIGH}"
            began.set()
            await asyncio.sleep(60)
        yield "done"

    async with working(client, app(FunctionModel(stream_function=stream), []), cache=cache) as runs:
        handle = await runs.start("a", "go", **SESSION)
        await began.wait()
        await update(handle, "interrupt", {})
        assert (await turn(handle, turn=1))["state"] == "interrupted"
        assert await answered(handle, "more") == "done"
        partial = asked[1][1]
        await closed(handle)
    assert isinstance(partial, ModelResponse)
    assert (partial.text, partial.state) == ("so \ufffd", "interrupted")


def test_what_has_none_stays_as_it_is() -> None:
    parts = [TextPart(f"é{SMILE}", id="1"), ToolCallPart("look", {"n": [1, {"b": "ü"}]}, "c1")]
    response = ModelResponse(parts, model_name="m")
    assert joined(response) is response


def test_text_of_pairs_and_halves() -> None:
    assert whole(f"{HIGH}{LOW}, {LOW}{HIGH}é") == f"{SMILE}, \ufffd\ufffdé"
