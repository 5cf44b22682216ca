"""What can be wrong about an agent as a tool, found when it is declared or when the `App` is built."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from perdure import App, DurableAgent, Limits, ToolPolicy
from perdure.errors import DeclarationError
from perdure.toolsets.agent import agent_tool, handoff_tool


class Question(BaseModel):
    prompt: str
    lang: str


class Params(BaseModel):
    lang: str
    customer: str = "nobody"


class Tree(BaseModel):
    """Refers to itself, so that its schema is one of `$defs`."""

    prompt: str
    lang: str
    children: list[Tree] = []


class Own(BaseModel):
    customer: str


def built(tool: Any, *, own: Any = None, other: Any = None, policy: ToolPolicy | None = None) -> App:
    """An app of an agent with the tool, and of the agent `clerk`."""
    policies = {} if policy is None else {"ask_*": policy}
    boss = DurableAgent(Agent(TestModel(), name="boss", tools=[tool]), params_type=own, policies=policies)
    clerk = DurableAgent(
        Agent(TestModel(), name="clerk"), params_type=other, models={"small": "test"}, limits=Limits(requests=5)
    )
    return App(agents=[boss, clerk])


@pytest.mark.parametrize(
    ("tool", "own", "other", "said"),
    [
        (agent_tool("clark"), None, None, "agent 'boss': tool 'ask_clark': no agent is named 'clark'. Known agents:"),
        (handoff_tool("clark"), None, None, "tool 'transfer_to_clark': no agent is named 'clark'"),
        (handoff_tool("boss"), None, None, "hands over to its own agent"),
        (agent_tool("clerk", model="big"), None, None, "model='big' is none of agent 'clerk'. Known models: ['small']"),
        (agent_tool("clerk", params={"lang": "en"}), None, None, "gives ['lang'], but agent 'clerk' takes no params"),
        (agent_tool("clerk"), None, Params, "agent 'clerk' needs the params ['lang']"),
        (agent_tool("clerk", inherit=["lang"]), Own, Params, "inherit=['lang'] names params that agent 'boss' hasn't"),
        (agent_tool("clerk", inherit=["lang"]), None, Params, "Its params: []"),
        (handoff_tool("clerk", inherit=["customer"]), Own, Params, "needs the params ['lang']"),
        (agent_tool("clerk", limits=Limits(requests=6)), None, None, "limits.requests=6 is more than agent 'clerk'"),
    ],
)
def test_what_is_wrong_about_the_agent_shows_in_the_app(tool: Any, own: Any, other: Any, said: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        built(tool, own=own, other=other)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_depth": 0}, "max_depth=0 must be at least 1"),
        ({"max_depth": "3"}, "max_depth='3' must be at least 1, a whole number"),
        ({"prompt": ""}, "prompt='' must be a field of the input that is text. Its fields: ['prompt']"),
        ({"input": Tree, "prompt": "children"}, "Its fields: ['children', 'lang', 'prompt']"),
        ({"prompt": "question"}, "prompt='question' must be a field of the input that is text"),
        ({"input": Params}, "prompt='prompt' must be a field of the input that is text"),
        (
            {"input": Question, "params": {"lang": "en"}},
            "['lang'] come from more than one of input",
        ),
        ({"input": int}, "must be a model, dataclass or TypedDict"),
        ({"color": "red"}, "agent_tool('clerk')"),
    ],
)
def test_what_is_wrong_in_itself_shows_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        agent_tool("clerk", **options)
    assert said in str(raised.value)


def test_a_type_that_refers_to_itself_has_its_fields_too() -> None:
    built(agent_tool("clerk", input=Tree), other=Params)
    with pytest.raises(DeclarationError, match=r"needs the params \['lang', 'prompt'\]"):
        built(agent_tool("clerk"), other=Tree)


def test_what_is_right() -> None:
    built(agent_tool("clerk", input=Question, inherit=["customer"]), own=Own, other=Params)
    built(agent_tool("clerk", model="small", limits=Limits(requests=5)))
    built(agent_tool("served elsewhere", task_queue="far"))
    built(agent_tool("served elsewhere"), policy=ToolPolicy(task_queue="far"))
    tool = agent_tool("the clerk")
    assert (tool.name, tool.description) == (
        "ask_the_clerk",
        "Let the agent 'the clerk' work on something, and wait for its answer.",
    )


async def test_without_a_durable_run_the_tool_says_so() -> None:
    with pytest.raises(Exception, match="only a run of AgentWorkflow can make this call"):
        await Agent(TestModel(), tools=[agent_tool("clerk")]).run("go")
