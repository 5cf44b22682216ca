"""The `App`: the agents and resources that a worker serves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from pydantic_ai.agent import AbstractAgent

from perdure.agent import DurableAgent
from perdure.checks.agent import check_agent
from perdure.checks.functions import check_function, check_resources
from perdure.contracts import SEARCH_ATTRIBUTES, Notification, Principal, TokenUse
from perdure.delegates import check_delegates
from perdure.errors import DeclarationError, UnknownAgent
from perdure.queues import TaskQueue, check_queues, check_served
from perdure.typed import check_arguments


class App:
    """What a worker serves. Everything that can be wrong in a declaration is wrong here, when it is built.

    Args:
        agents: `DurableAgent`s, or plain Pydantic AI agents, which get every default.
        resources: a function that returns an async context manager, entered once for the life of each worker; what it
            yields is the second argument of every `deps`. For connection pools and clients.
        verifier: an async function of a token and a `TokenUse`, called on the worker for each decision; returns the
            `Principal` whose token it is, or raises `NotAllowed`. With one, only verified people decide. See
            `perdure.tokens.SignedTokens`.
        notifier: an async function of a `Notification`, called on the worker when something begins to wait, is
            reminded, escalated or decided. Its failure never holds up a run. See `perdure.webhook.Webhook`.
        search_attributes: which of `AgentName`, `AgentStatus` and `AgentWaiting` to set, as far as they are registered
            (`perdure setup`), which each run asks for. `None`: all.
        task_queues: queues of their own for tools, by the name that `ToolPolicy(task_queue=…)` gives, with the limits
            that Temporal keeps. A worker serves all of them unless it is told which.

    Raises:
        DeclarationError: naming what is wrong, what is known, and what to do.
    """

    def __init__(
        self,
        *,
        agents: Sequence[DurableAgent | AbstractAgent[Any, Any]],
        resources: Callable[[], AbstractAsyncContextManager[Any]] | None = None,
        verifier: Callable[[str, TokenUse], Awaitable[Principal]] | None = None,
        notifier: Callable[[Notification], Awaitable[None]] | None = None,
        search_attributes: Sequence[str] | None = None,
        task_queues: Mapping[str, TaskQueue] | None = None,
    ) -> None:
        check_arguments(App.__init__, locals(), "App(…)", own=("task_queues", "verifier", "notifier"))
        if not agents:
            raise DeclarationError("App(agents=[]) serves nothing: give at least one agent")
        check_function("verifier", verifier, 2)
        check_function("notifier", notifier, 1)
        check_resources(resources)
        check_queues(task_queues)
        self.task_queues = dict(task_queues or {})
        self.agents: dict[str, DurableAgent] = {}
        for declared in agents:
            durable = declared if isinstance(declared, DurableAgent) else DurableAgent(declared)
            check_agent(durable)
            _check_approvers(durable, verifier is not None)
            check_served(durable, self.task_queues)
            if durable.name in self.agents:
                raise DeclarationError(f"two agents are named {durable.name!r}: a run asks for an agent by its name")
            self.agents[durable.name] = durable
        check_delegates(self.agents)
        if unknown := sorted(set(search_attributes or ()) - set(SEARCH_ATTRIBUTES)):
            raise DeclarationError(f"search_attributes={unknown!r} are not set by perdure. Known: {SEARCH_ATTRIBUTES}")
        self.resources = resources
        self.verifier = verifier
        self.notifier = notifier
        self.search_attributes = search_attributes

    def agent(self, name: str) -> DurableAgent:
        """The agent of that name. Raises `UnknownAgent`, naming the known ones."""
        try:
            return self.agents[name]
        except KeyError:
            raise UnknownAgent(f"no agent is named {name!r}. Known agents: {sorted(self.agents)}") from None


def _check_approvers(durable: DurableAgent, verified: bool) -> None:
    asked = {f"policy {name!r}": policy.approval for name, policy in durable.policies.items()}
    for what, approval in {**asked, "limit_approval": durable.limit_approval}.items():
        groups = approval.groups if approval else []
        if groups and not verified:
            raise DeclarationError(
                f"agent {durable.name!r}: {what} asks {groups}, but nobody can show to be in a group without "
                "App(verifier=…): give one, or name the people"
            )
