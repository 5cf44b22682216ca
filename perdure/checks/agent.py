"""An agent and what is durable about it: `check_agent` raises for the first thing that is wrong."""

from __future__ import annotations

from typing import Any

from perdure.agent import DurableAgent
from perdure.capabilities import check_capabilities
from perdure.checks.functions import check_deps
from perdure.checks.policies import check_policies, check_reader, check_targets
from perdure.checks.tools import check_tools
from perdure.errors import DeclarationError
from perdure.schemas import no_type
from perdure.searching import check_search


def check_agent(durable: DurableAgent) -> None:
    """Raise `DeclarationError` for the first thing that is wrong with the agent."""
    agent = durable.agent
    if not agent.name:
        raise DeclarationError('an agent needs a name, which a run asks for: Agent(…, name="support")')
    where = f"agent {agent.name!r}"
    if agent.event_stream_handler is not None:
        raise DeclarationError(
            f"{where}: event_stream_handler would be called anew in every activity; read the live text of a run instead"
        )
    check_capabilities(agent, where)
    check_tools(durable, where)
    check_policies(durable, where)
    check_targets(durable, where)
    check_reader(durable, where)
    check_search(durable, where)
    _check_params(durable, where)


def _check_params(durable: DurableAgent, where: str) -> None:
    deps_type = getattr(durable.agent, "deps_type", None)
    if durable.agent.model is None and not durable.models:
        raise DeclarationError(f"{where} has no model: Agent(model, …), or DurableAgent(models={{…}})")
    if durable.params_type is not None and (reason := no_type(durable.params_type)):
        raise DeclarationError(
            f"{where}: params_type={durable.params_type!r} isn't a type that Pydantic reads: {reason}"
        )
    if durable.deps is not None:
        check_deps(durable.deps, where)
    needs_deps = deps_type not in (None, type(None), object, Any)
    if needs_deps and durable.deps is None and durable.params_type is None:
        raise DeclarationError(
            f"{where}: its deps_type is {getattr(deps_type, '__name__', deps_type)!r}, so give "
            "DurableAgent(deps=…), a function of (params, resources) that builds it on the worker, or params_type=… "
            "where the params themselves are the deps"
        )
