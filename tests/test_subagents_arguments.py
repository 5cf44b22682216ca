"""What a model may give to an agent as a tool: an argument that it made up is told, and no run begins."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from temporalio.client import Client

from perdure import App, DurableAgent
from perdure.toolsets.agent import agent_tool, handoff_tool
from tests.deciding import answers
from tests.family import children
from tests.harness import working
from tests.scripts import Script


class Question(BaseModel):
    prompt: str
    lang: str = "en"


class Open(Question, extra="ignore"):
    """Says itself that what it doesn't know is left out."""


class Lang(BaseModel):
    lang: str = "en"


def asking(tool: Any, *turns: Any) -> App:
    """A boss with the tool, and the clerk it is about."""
    boss = Agent(Script(*turns).model, name="boss", tools=[tool])
    clerk = Agent(Script("It is seven.", "It is seven.").model, name="clerk")
    return App(agents=[boss, DurableAgent(clerk, params_type=Lang)])


@pytest.mark.parametrize("input", [None, Question], ids=["prompt", "model"])
async def test_an_argument_that_the_model_made_up_is_refused(client: Client, cache: int, input: Any) -> None:
    made_up, right = {"prompt": "look", "colour": "red"}, {"prompt": "look"}
    app = asking(agent_tool("clerk", input=input), {"ask_clerk": made_up}, {"ask_clerk": right}, "done")
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("boss", "go")
        await handle.result()
        (outcome, text), good = (await answers(handle)).values()
        assert (outcome, good) == ("retried", ("success", "It is seven."))
        assert "colour" in text
        assert len(await children(client, handle)) == 1


async def test_a_handoff_refuses_it_too(client: Client) -> None:
    tool = handoff_tool("clerk", input=Lang)
    app = asking(tool, {"transfer_to_clerk": {"colour": "red"}}, "I stay.")
    async with working(client, app) as runs:
        handle = await runs.start("boss", "go")
        assert (await handle.result())["output"] == "I stay."
        ((outcome, text),) = (await answers(handle)).values()
        assert outcome == "retried"
        assert "colour" in text


async def test_a_model_that_says_so_ignores_it(client: Client) -> None:
    app = asking(agent_tool("clerk", input=Open), {"ask_clerk": {"prompt": "look", "colour": "red"}}, "done")
    async with working(client, app) as runs:
        handle = await runs.start("boss", "go")
        await handle.result()
        assert list((await answers(handle)).values()) == [("success", "It is seven.")]


def test_the_model_is_shown_that_nothing_else_is_taken() -> None:
    shown = agent_tool("clerk", input=Question).function_schema.json_schema
    assert shown["additionalProperties"] is False
    assert sorted(shown["properties"]) == ["lang", "prompt"]
