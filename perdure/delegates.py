"""The agents that tools name, checked when the `App` is built, where all of its agents are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.tools import ToolDefinition

from perdure.agent import DurableAgent
from perdure.checks.known import static_tools
from perdure.contracts import AgentTerms, Limits, Target
from perdure.errors import DeclarationError
from perdure.toolsets.signature import with_fields
from perdure.toolsets.target import target_of


def check_delegates(agents: Mapping[str, DurableAgent]) -> None:
    """Raise `DeclarationError` for a tool whose agent isn't there, or wouldn't take what the tool gives."""
    for durable in agents.values():
        for name, tool in static_tools(durable)[0].items():
            target = target_of(tool)
            if target is None or target.kind not in ("agent", "handoff"):
                continue
            if target.kind == "agent" and (target.task_queue or durable.policy(name).task_queue):
                continue  # served elsewhere
            _check(f"agent {durable.name!r}: tool {name!r}", durable, tool, target, agents)


def _check(
    where: str, caller: DurableAgent, tool: ToolDefinition, target: Target, agents: Mapping[str, DurableAgent]
) -> None:
    other, terms = agents.get(target.name), target.agent or AgentTerms()
    if other is None:
        raise DeclarationError(
            f"{where}: no agent is named {target.name!r}. Known agents: {sorted(agents)}"
            + (". Where other workers serve it, say so: agent_tool(…, task_queue=…)" * (target.kind == "agent"))
        )
    if target.kind == "handoff" and other is caller:
        raise DeclarationError(f"{where} hands over to its own agent")
    if terms.model is not None and terms.model not in other.models:
        raise DeclarationError(
            f"{where}: model={terms.model!r} is none of agent {target.name!r}. Known models: {sorted(other.models)}"
        )
    _check_limits(where, other, terms)
    _check_params(where, caller, other, terms, tool)


def _check_limits(where: str, other: DurableAgent, terms: AgentTerms) -> None:
    asked = Limits.model_validate(terms.limits)
    for name in terms.limits:
        value, bound = getattr(asked, name), getattr(other.limits, name)
        if bound is not None and (value is None or value > bound):
            raise DeclarationError(
                f"{where}: limits.{name}={value!r} is more than agent {other.name!r} allows ({bound!r}): a run may "
                "only lower a limit"
            )


def _check_params(
    where: str, caller: DurableAgent, other: DurableAgent, terms: AgentTerms, tool: ToolDefinition
) -> None:
    fields: Mapping[str, Any] = with_fields(tool.parameters_json_schema).get("properties", {})
    given = sorted({*(name for name in fields if name != terms.prompt), *terms.params, *terms.inherit})
    if other.params_type is None and other.deps is None and given:
        raise DeclarationError(f"{where} gives {given}, but agent {other.name!r} takes no params")
    if missing := sorted({*_schema(other).get("required", [])} - {*given}):
        raise DeclarationError(
            f"{where}: agent {other.name!r} needs the params {missing}: give them by input, params or inherit"
        )
    _check_values(where, other, terms)
    own = _schema(caller).get("properties")
    unknown = [name for name in terms.inherit if own is not None and name not in own]
    if unknown or (terms.inherit and caller.params_type is None and caller.deps is None):
        raise DeclarationError(
            f"{where}: inherit={unknown or terms.inherit} names params that agent {caller.name!r} hasn't. "
            f"Its params: {sorted(own or [])}"
        )


def _check_values(where: str, other: DurableAgent, terms: AgentTerms) -> None:
    """The params that are always the same are what the other agent's `params_type` takes, read as a start reads them.
    What is said of those that are missing here, or of the whole, only a call can tell."""
    if other.params_type is None or not terms.params:
        return
    try:
        TypeAdapter(other.params_type).validate_python(terms.params)
    except ValidationError as error:
        for row in error.errors(include_url=False, include_context=False):
            name = row["loc"][0] if row["loc"] else None
            if name in terms.params and row["type"] != "missing":
                raise DeclarationError(
                    f"{where}: params[{name!r}]={terms.params[str(name)]!r} isn't what agent {other.name!r} takes: "
                    f"{row['msg']}"
                ) from None
    except Exception:  # a validator of the type that needs the other params
        return


def _schema(durable: DurableAgent) -> Mapping[str, Any]:
    """The JSON Schema of an agent's params, as far as it is an object."""
    return {} if durable.params_type is None else with_fields(TypeAdapter(durable.params_type).json_schema())
