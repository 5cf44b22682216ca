"""What can be wrong in a declaration is wrong when it is made, with an error that names what is known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest
from pydantic import SecretStr
from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.capabilities import AbstractCapability, HandleDeferredToolCalls, Hooks, LocalWorkspace
from pydantic_ai.models.test import TestModel

from perdure import App, Approval, DeclarationError, DurableAgent, ToolPolicy


def look(n: int) -> str:
    """Look something up."""
    return str(n)


def one_argument(params: Any) -> Any:
    """Not a deps function: that gets resources too."""
    return params


def secret(key: SecretStr) -> str:
    """Takes a secret."""
    return key.get_secret_value()


def agent(**options: Any) -> Agent[Any, Any]:
    """A small agent."""
    make: Any = Agent
    return make(**{"model": TestModel(), "name": "small", "tools": [look], **options})


class WrapsRun(AbstractCapability[Any]):
    """A capability with a hook that happens once per run."""

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        return await handler()


def hooked() -> Hooks[Any]:
    """Hooks with one that happens once per run."""
    hooks: Hooks[Any] = Hooks()

    @hooks.on.before_run
    async def before(ctx: RunContext[Any]) -> None: ...  # pyright: ignore[reportUnusedFunction]

    return hooks


DECLARATIONS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"name": None}, {}, "an agent needs a name"),
    ({"model": None}, {}, "has no model"),
    ({"toolsets": [FunctionToolset([look])]}, {}, "has no id"),
    ({"tools": [secret]}, {}, "'key' is write-only"),
    ({"tools": []}, {"policies": {"refnud": ToolPolicy()}}, r"'refnud' matches no tool. Known tools: \[\]"),
    ({}, {"policies": {"lok": ToolPolicy()}}, r"'lok' matches no tool. Known tools: \['look'\]"),
    ({"toolsets": [FunctionToolset([look], id="t").prefixed("x" * 70)]}, {}, "is not 1 to 64 of"),
    ({"deps_type": str}, {}, "its deps_type is 'str'"),
    ({}, {"deps": "value"}, r"takes a function of \(params, resources\).*got str"),
    ({}, {"deps": one_argument}, "can't be called so: too many positional arguments"),
    ({"capabilities": [WrapsRun()]}, {}, "WrapsRun.wrap_run happens once per run"),
    ({"capabilities": [hooked()]}, {}, "Hooks.before_run happens once per run"),
    ({"capabilities": [HandleDeferredToolCalls(cast("Any", look))]}, {}, "handle_deferred_tool_calls can't be carried"),
    ({"capabilities": [LocalWorkspace("/tmp")]}, {}, "LocalWorkspace.get_workspace can't be carried"),
]


@pytest.mark.parametrize(("options", "durable", "message"), DECLARATIONS, ids=[row[2][:30] for row in DECLARATIONS])
def test_a_wrong_agent_is_refused_by_the_app(options: dict[str, Any], durable: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        App(agents=[DurableAgent(agent(**options), **durable)])


POLICIES: list[tuple[dict[str, Any], str]] = [
    ({"effect": "save"}, r"effect='save' is none of \('unsafe', 'idempotent', 'safe'\)"),
    ({"on_timeout": "never"}, "on_timeout='never' is none of"),
    ({"attempts": 2}, "an unsafe tool never runs twice"),
    ({"on_timeout": "retry"}, "needs effect='idempotent' or 'safe'"),
    ({"effect": "safe", "attempts": 0}, "must be at least 1"),
    ({"timeout": -1}, "timeout=-1 must be"),
]


@pytest.mark.parametrize(("options", "message"), POLICIES, ids=[row[1][:25] for row in POLICIES])
def test_a_wrong_policy_is_refused_where_it_is_made(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        ToolPolicy(**options)


APPROVALS: list[tuple[dict[str, Any], str]] = [
    ({"quorum": 0}, "quorum=0 must be at least 1"),
    ({"approvers": ["ann"], "quorum": 2}, "quorum=2 is more than the approvers"),
    ({"approvers": ["ann", ""]}, "must be a list of names"),
    ({"approvers": "ann"}, "must be a list of names"),
    ({"expires_after": timedelta(0)}, "must be more than 0"),
    ({"expires_after": timedelta.max}, "must be more than 0 and at most"),
    ({"on_expiry": "escalate", "expires_after": timedelta(1)}, "needs escalate_to"),
    ({"on_expiry": "fail"}, "on_expiry='fail' needs expires_after"),
]


@pytest.mark.parametrize(("options", "message"), APPROVALS, ids=[row[1][:25] for row in APPROVALS])
def test_an_approval_without_a_way_to_decide_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        Approval(**options)


def test_a_wrong_app_is_refused() -> None:
    with pytest.raises(DeclarationError, match="serves nothing"):
        App(agents=[])
    with pytest.raises(DeclarationError, match="two agents are named 'small'"):
        App(agents=[agent(), agent()])


def test_a_plain_agent_is_accepted_with_every_default() -> None:
    app = App(agents=[agent()])
    assert app.agent("small").policy("look") == ToolPolicy()


def test_a_policy_is_found_by_name_before_pattern() -> None:
    exact, pattern = ToolPolicy(effect="safe"), ToolPolicy(effect="idempotent")
    durable = DurableAgent(agent(), policies={"l*": pattern, "look": exact})
    assert durable.policy("look") == exact
    assert durable.policy("list") == pattern
    assert durable.policy("other") == ToolPolicy()
