"""The `App`: the agents and resources that a worker serves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from pydantic_ai.agent import AbstractAgent

from perdure.agent import DurableAgent
from perdure.checks import check_agent
from perdure.contracts import SEARCH_ATTRIBUTES
from perdure.errors import DeclarationError, UnknownAgent


class App:
    """What a worker serves. Everything that can be wrong in a declaration is wrong here, when it is built.

    Args:
        agents: `DurableAgent`s, or plain Pydantic AI agents, which get every default.
        resources: a function that returns an async context manager, entered once for the life of each worker; what it
            yields is the second argument of every `deps`. For connection pools and clients.
        verifier: reserved for approvals; refused until they are built.
        notifier: reserved for approvals; refused until they are built.
        search_attributes: which of `AgentName` and `AgentStatus` to set, as far as they are registered, which each run
            asks for. `None`: both.

    Raises:
        DeclarationError: naming what is wrong, what is known, and what to do.
    """

    def __init__(
        self,
        *,
        agents: Sequence[DurableAgent | AbstractAgent[Any, Any]],
        resources: Callable[[], AbstractAsyncContextManager[Any]] | None = None,
        verifier: Callable[..., Awaitable[Any]] | None = None,
        notifier: Callable[..., Awaitable[Any]] | None = None,
        search_attributes: Sequence[str] | None = None,
    ) -> None:
        if not agents:
            raise DeclarationError("App(agents=[]) serves nothing: give at least one agent")
        if verifier is not None or notifier is not None:
            raise DeclarationError("App(verifier=…, notifier=…) belong to approvals, which are not built yet")
        self.agents: dict[str, DurableAgent] = {}
        for declared in agents:
            durable = declared if isinstance(declared, DurableAgent) else DurableAgent(declared)
            check_agent(durable)
            if durable.name in self.agents:
                raise DeclarationError(f"two agents are named {durable.name!r}: a run asks for an agent by its name")
            self.agents[durable.name] = durable
        if unknown := sorted(set(search_attributes or ()) - set(SEARCH_ATTRIBUTES)):
            raise DeclarationError(f"search_attributes={unknown!r} are not set by perdure. Known: {SEARCH_ATTRIBUTES}")
        self.resources = resources
        self.search_attributes = search_attributes

    def agent(self, name: str) -> DurableAgent:
        """The agent of that name. Raises `UnknownAgent`, naming the known ones."""
        try:
            return self.agents[name]
        except KeyError:
            raise UnknownAgent(f"no agent is named {name!r}. Known agents: {sorted(self.agents)}") from None
