"""What can be known of a declared agent without a run, as JSON."""

from __future__ import annotations

from typing import Any, cast

from pydantic_ai.models import Model
from pydantic_ai.tools import ToolDefinition

from perdure.agent import DurableAgent
from perdure.checks.known import static_tools
from perdure.checks.undecided import undecided
from perdure.contracts import Json
from perdure.policy import READER, ToolPolicy
from perdure.toolsets.read_result import is_reader
from perdure.toolsets.target import served_by, target_of


def describe_agent(durable: DurableAgent) -> Json:
    """The agent, its limits and its tools with the policies that apply."""
    tools, complete = static_tools(durable)
    limits = durable.limits.model_dump(mode="json", exclude_none=True)
    if durable.limits.cost is None and durable.limits.turn_cost is None:
        limits.pop("unpriced_requests", None)  # without a limit of the cost it means nothing
    return {
        "name": durable.name,
        "version": durable.version,
        "model": _model(durable.agent.model),
        "models": {key: _model(model) for key, model in durable.models.items()},
        "output": _type_name(durable.agent.output_type),
        "params": _type_name(durable.params_type) if durable.params_type is not None else None,
        "limits": limits,
        "on_limit": durable.on_limit,
        "tools": [_describe_tool(durable, name, tool) for name, tool in tools.items()],
        "all_tools_known": complete,
        "judged_in_a_run": undecided(durable),
    }


def _describe_tool(durable: DurableAgent, name: str, tool: ToolDefinition) -> Json:
    policy = READER if is_reader(tool) and not durable.rule(name) else durable.policy(name)
    options, target = policy.options(tool_timeout=tool.timeout), target_of(tool)
    return {
        "name": name,
        "description": tool.description or "",
        "schema": tool.parameters_json_schema,
        "effect": options.effect,
        "attempts": options.attempts,
        "timeout": options.timeout if options.timeout is not None else tool.timeout,
        "waits_for": _waits_for(policy, tool),
        "served_by": served_by(target) if target is not None else "",
        "approval": policy.approval.terms(durable.rule(name)).model_dump(mode="json") if policy.approval else None,
    }


def _waits_for(policy: ToolPolicy, tool: ToolDefinition) -> str:
    """What a call of the tool waits for before it has a result, as far as it is declared."""
    if tool.kind == "external":
        return "a result from outside"
    if policy.approval is None:
        return "approval" if tool.kind == "unapproved" else ""
    asks = "approval" if policy.approval.when is None or tool.kind == "unapproved" else "approval, where `when` says so"
    return f"{asks}, of {', '.join(policy.approval.approvers) or 'anyone'}"


def _model(model: Model | str | None) -> str | None:
    return model.model_id if isinstance(model, Model) else model


def _type_name(kind: Any) -> str:
    if isinstance(kind, list | tuple):
        return " | ".join(_type_name(member) for member in cast("list[Any]", kind))
    return getattr(kind, "__name__", None) or str(kind)
