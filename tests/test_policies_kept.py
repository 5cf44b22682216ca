"""Policies of tools that run elsewhere: what none of them keeps to is refused, what some keep to isn't."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import FunctionToolset

from perdure import App, DurableAgent, ToolPolicy
from perdure.contracts import ExternalCall
from perdure.errors import DeclarationError
from perdure.toolsets.agent import agent_tool, handoff_tool
from perdure.toolsets.temporal import TemporalTools


class Order(BaseModel):
    sku: str


async def hand_over(call: ExternalCall) -> None:
    """Nobody calls it."""


def look(n: int) -> str:
    """A function of the agent's own."""
    return str(n)


def validate(ctx: Any, **args: Any) -> None:
    """It might send the call outside."""


def app(policies: dict[str, ToolPolicy], **options: Any) -> App:
    """One tool of each kind."""
    given: dict[str, Any] = {"description": "Anything.", "input_model": Order}
    tools = TemporalTools("others", task_queue="theirs")
    tools.activity("Act", name="act", **given, **options)
    tools.activity("Beat", name="beat", heartbeats=True, **given)
    tools.workflow("Flow", name="flow", **given)
    if any(policy.effect != "unsafe" for policy in policies.values()):
        tools.nexus("Op", name="op", service="S", endpoint="e", **given)
    own = FunctionToolset[object]([look], id="own")
    staff: list[Any] = [agent_tool("clerk", name="ask"), handoff_tool("clerk", name="hand")]
    agent = Agent(TestModel(), name="boss", tools=staff, toolsets=[tools, own])
    return App(
        agents=[DurableAgent(agent, policies=policies), Agent(TestModel(), name="clerk")],
    )


IGNORED: list[tuple[str, dict[str, Any], str]] = [
    ("ask", {"on_timeout": "fail"}, "timeout is its deadline"),
    ("ask", {"schedule_to_start": 1}, "waits for a worker"),
    ("ask", {"effect": "idempotent", "attempts": 3}, "it is begun once"),
    ("ask", {"backoff": 2}, "it is begun once"),
    ("ask", {"wait": 5}, "doesn't come from outside"),
    ("ask", {"heartbeat": 5}, "is a run"),
    ("ask", {"dispatch": hand_over}, "doesn't come from outside"),
    ("hand", {"effect": "safe"}, "a handoff only asks"),
    ("hand", {"timeout": 5}, "a handoff only asks"),
    ("hand", {"on_timeout": "fail"}, "a handoff only asks"),
    ("hand", {"schedule_to_start": 5}, "a handoff only asks"),
    ("hand", {"task_queue": "q"}, "a handoff only asks"),
    ("hand", {"cancel_grace": 5}, "a handoff only asks"),
    ("hand", {"max_result_bytes": 5000}, "a handoff only asks"),
    ("flow", {"heartbeat": 5}, "a workflow sends none"),
    ("flow", {"schedule_to_start": 5}, "a workflow has no schedule_to_start"),
    ("flow", {"effect": "safe", "on_timeout": "retry"}, "all of its time"),
    ("flow", {"effect": "safe", "on_timeout": "report"}, "is 'failed' when its time is over"),
    ("act", {"heartbeat": 5}, "unless it is declared with heartbeats=True"),
    ("act", {"wait": 5}, "doesn't come from outside"),
    ("act", {"effect": "safe", "on_timeout": "report"}, "is 'failed' when its time is over"),
    ("op", {"effect": "safe", "attempts": 3}, "attempts don't apply"),
    ("op", {"effect": "safe", "task_queue": "q"}, "its endpoint has a queue"),
    ("op", {"effect": "safe", "backoff": 2}, "repeated until its timeout"),
    ("op", {"effect": "safe", "heartbeat": 2}, "sends none"),
    ("op", {"effect": "safe", "on_timeout": "retry"}, "all of its time"),
    ("op", {"effect": "safe", "wait": 2}, "doesn't come from outside"),
]


@pytest.mark.parametrize(("tool", "options", "reason"), IGNORED)
def test_an_option_that_does_nothing_is_refused(tool: str, options: dict[str, Any], reason: str) -> None:
    name, value = list(options.items())[-1]
    policies = {"op": ToolPolicy(effect="safe")} if tool != "op" and "effect" in options else {}
    with pytest.raises(DeclarationError, match=re.escape(f"{name}={value!r} has no effect on ['{tool}']")) as caught:
        app({**policies, tool: ToolPolicy(**options)})
    assert reason in str(caught.value)


KEPT: list[tuple[str, dict[str, Any]]] = [
    ("ask", {"effect": "idempotent", "timeout": 5, "cancel_grace": 60, "max_result_bytes": 5000, "result": str}),
    ("ask", {"effect": "idempotent", "attempts": 1, "task_queue": "far"}),
    ("flow", {"effect": "safe", "attempts": 3, "backoff": 2, "on_timeout": "fail", "timeout": 5, "cancel_grace": 20}),
    ("flow", {"on_timeout": "report"}),
    ("act", {"effect": "safe", "attempts": 3, "backoff": 2, "on_timeout": "retry", "schedule_to_start": 5}),
    ("act", {"on_timeout": "report", "timeout": 5, "max_result_bytes": 5000, "result": str}),
    ("beat", {"heartbeat": 5}),
    ("op", {"effect": "safe", "on_timeout": "fail", "schedule_to_start": 5, "timeout": 5, "cancel_grace": 5}),
]


@pytest.mark.parametrize(("tool", "options"), KEPT)
def test_an_option_that_does_something_is_taken(tool: str, options: dict[str, Any]) -> None:
    policies = {"op": ToolPolicy(effect="safe")} if tool != "op" and "effect" in options else {}
    served = app({**policies, tool: ToolPolicy(**options)})
    assert served.agent("boss").policy(tool) == ToolPolicy(**options)


def test_a_pattern_is_for_those_tools_that_keep_to_it() -> None:
    every: dict[str, Any] = {
        "effect": "safe",
        "attempts": 3,
        "backoff": 2,
        "heartbeat": 5,
        "schedule_to_start": 5,
        "wait": 5,
    }
    app({"*": ToolPolicy(**every, on_timeout="retry", timeout=5)})
    with pytest.raises(DeclarationError, match=re.escape("schedule_to_start=5 has no effect on ['flow', 'hand']")):
        app({"[fh]*[wd]": ToolPolicy(schedule_to_start=5)})


def test_a_call_that_a_validator_may_send_outside_has_a_time_to_wait() -> None:
    policy = ToolPolicy(wait=5, on_timeout="fail", dispatch=hand_over)
    assert app({"act": policy}, args_validator=validate).agent("boss").policy("act") == policy
