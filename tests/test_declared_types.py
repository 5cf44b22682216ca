"""A value of a wrong type is refused where it is declared, in one sentence: what it is, what is taken, what to do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from perdure import App, Approval, Breaker, DeclarationError, DurableAgent, Limits, TaskQueue, ToolPolicy
from perdure.contracts import Target

app: Any = App
approval: Any = Approval
breaker: Any = Breaker
durable: Any = DurableAgent
limits: Any = Limits
policy: Any = ToolPolicy
queue: Any = TaskQueue
target: Any = Target
"""They are called with what no type checker lets pass."""


def look(n: int) -> str:
    """Look something up."""
    return str(n)


AGENT = Agent(TestModel(), name="small", tools=[look])


@dataclass
class Params:
    """Params of an agent."""

    n: int = 1


class Model(BaseModel):
    """The same as a model."""

    n: int = 1


async def pool() -> AsyncGenerator[int]:
    """Without `@asynccontextmanager`."""
    yield 1


def served(**options: Any) -> App:
    """An App with one agent that is declared so."""
    return App(agents=[durable(AGENT, **options)])


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: policy(breaker=5), "breaker=5 must be a Breaker(…)"),
    (lambda: policy(breaker=Breaker), "breaker=the class Breaker must be a Breaker(…): make one, Breaker(…)"),
    (lambda: policy(approval=True), "approval=True must be an Approval(…)"),
    (lambda: policy(approval="ann"), "approval='ann' must be an Approval(…)"),
    (lambda: policy(approval={"quorum": 2}), "must be an Approval(…): write Approval(quorum=2)"),
    (lambda: policy(dispatch=3), "dispatch=3 must be a function"),
    (lambda: policy(on_timeout=3), "on_timeout=3 is none of ('report', 'retry', 'fail')"),
    (lambda: policy(effect="safe", attempts=2.5), "attempts=2.5 must be at least 1, a whole number"),
    (lambda: approval(when=True), "when=True must be a function"),
    (lambda: approval(when=look), "when=the function look can't be called with 2 arguments: too many"),
    (lambda: approval(quorum="2"), "quorum='2' must be a whole number"),
    (lambda: approval(quorum=True), "quorum=True must be a whole number"),
    (lambda: approval(approvers="ann"), "approvers='ann' must be a list of names: put it into a list"),
    (lambda: approval(approvers=[3]), "approvers[0]=3 must be text"),
    (lambda: approval(approvers=[""]), "approvers=[''] must be a list of names, none of them empty"),
    (lambda: approval(approvers=[]), "approvers=[] names nobody. Leave approvers out where anyone may"),
    (lambda: approval(expires_after=60), "expires_after=60 must be a timedelta"),
    (lambda: approval(reminders=timedelta(1)), "must be a list: put it into a list"),
    (lambda: approval(allow_edit="yes"), "allow_edit='yes' must be True or False"),
    (lambda: breaker(reset_after="60"), "reset_after='60' must be a finite time"),
    (lambda: breaker(failures=1.5), "failures=1.5 must be a whole number"),
    (lambda: durable("small"), "agent='small' must be an Agent"),
    (lambda: durable(Agent), "agent=the class Agent must be an Agent: make one, Agent(…)"),
    (lambda: durable(AGENT, version=3), "version=3 must be text"),
    (lambda: durable(AGENT, models={"c": 3}), "models['c']=3 must be a Model or text"),
    (
        lambda: durable(AGENT, models={"c": TestModel}),
        "models['c']=the class TestModel must be a Model or text: make one",
    ),
    (lambda: durable(AGENT, models={3: "test"}), "models: the key=3 must be text"),
    (lambda: durable(AGENT, models=["test"]), "models=['test'] must be a dictionary, names to a Model or text"),
    (lambda: durable(AGENT, limits={"requests": 1}), "must be a Limits(…): write Limits(requests=1)"),
    (lambda: durable(AGENT, policies={"look": "safe"}), "policies['look']='safe' must be a ToolPolicy(…)"),
    (lambda: durable(AGENT, policies={"look": {"effect": "safe"}}), "write ToolPolicy(effect='safe')"),
    (lambda: durable(AGENT, policies=[ToolPolicy()]), "policies=a list must be a dictionary, names to a ToolPolicy(…)"),
    (lambda: durable(AGENT, limit_approval=True), "limit_approval=True must be an Approval(…)"),
    (lambda: durable(AGENT, model_attempts=5, max_parallel_calls="3"), "max_parallel_calls='3' must be at least 1, a"),
    (lambda: durable(AGENT, model_timeout="600"), "model_timeout='600' must be a finite time"),
    (lambda: durable(AGENT, require_descriptions="yes"), "require_descriptions='yes' must be True or False"),
    (lambda: served(params_type="P"), "params_type='P' isn't a type that Pydantic reads: it is text; give the type"),
    (lambda: served(params_type=Params()), "it is a value; give the type, Params"),
    (lambda: served(params_type=Model()), "it is a value; give the type, Model"),
    (lambda: served(params_type={"type": "object"}), "isn't a type that Pydantic reads: it is a dictionary"),
    (lambda: served(policies={"look": ToolPolicy(result="int")}), "result='int' is neither a JSON Schema nor a type"),
    (lambda: app(agents=AGENT), "App(…): agents=an Agent must be a list: put it into a list"),
    (lambda: app(agents=["n"]), "App(…): agents[0]='n' must be a DurableAgent(…) or an Agent"),
    (lambda: app(agents=[AGENT], resources=3), "App(…): resources=3 must be a function"),
    (lambda: app(agents=[AGENT], resources=look), "resources=the function look can't be called with 0 arguments: miss"),
    (lambda: app(agents=[AGENT], resources=pool), "put @asynccontextmanager before a function that yields once"),
    (lambda: app(agents=[AGENT], search_attributes="AgentName"), "must be a list of names: put it into a list"),
    (
        lambda: app(agents=[AGENT], task_queues=["crm"]),
        "task_queues=['crm'] must be a dictionary, names to a TaskQueue",
    ),
    (lambda: app(agents=[AGENT], task_queues={"crm": TaskQueue}), "must be a TaskQueue(…): make one, TaskQueue(…)"),
    (lambda: queue(max_concurrent_activities="5"), "max_concurrent_activities='5' must be a whole number"),
    (lambda: limits(request=3), "Limits(…) has no 'request': did you mean 'requests'? Known: ['requests', "),
    (lambda: limits(requests=-1), "Limits(requests=-1): it must be greater than or equal to 0"),
    (lambda: limits(cost="much"), "Limits(cost='much'): it must be a valid decimal"),
    (lambda: target(kind="activty"), "Target(…): kind='activty' is none of ('activity', 'workflow', 'nexus'"),
    (lambda: target(name="Refund"), "Target(…): needs kind=…, one of ('activity', 'workflow', 'nexus'"),
    (lambda: target(kind="activity", positional="order_id"), "Target(positional='order_id'): it must be a valid list"),
    (lambda: target(kind="activity", nam="Refund"), "Target(…) has no 'nam': did you mean 'name'?"),
]


@pytest.mark.parametrize(("declare", "text"), WRONG, ids=[row[1][:40] for row in WRONG])
def test_a_wrong_type_is_refused_in_one_sentence(declare: Callable[[], Any], text: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        declare()
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_is_read_is_read_as_before() -> None:
    """A client sends limits, and a later version may have planned a kind of target that this one doesn't know."""
    with pytest.raises(ValueError, match="Extra inputs are not permitted") as raised:
        Limits.model_validate({"request": 3})
    assert not isinstance(raised.value, DeclarationError)
    assert Target.model_validate({"kind": "later", "new": 1}).kind == "unknown"


class Always:
    """An object that can be called, as a function would be."""

    async def __call__(self, ctx: Any, args: dict[str, Any]) -> bool:
        return True


def test_what_fits_is_taken() -> None:
    approval(when=Always(), approvers=("ann", "bob"), reminders=[timedelta(1)], expires_after=timedelta(2))
    approval(when=max, approvers={"ann": 1}.keys())
    served(models={"c": TestModel(), "d": "test"}, params_type=dict[str, int], deps=dict, model_timeout=5)
    served(
        params_type=Model, policies={"l*": ToolPolicy(timeout=timedelta(seconds=2), breaker=Breaker(), result=Model)}
    )
    App(agents={"one": AGENT}.values(), search_attributes=())  # pyright: ignore[reportArgumentType]
