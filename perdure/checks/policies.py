"""Whether the policies of an agent are for tools that it has."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from pydantic_ai.tools import ToolDefinition

from perdure.agent import DurableAgent
from perdure.checks.functions import check_function
from perdure.checks.kept import check_kept
from perdure.checks.known import ruled_by, static_tools
from perdure.checks.undecided import Open, did_you_mean, may_match, open_toolsets
from perdure.errors import DeclarationError
from perdure.listing import every
from perdure.schemas import check_type
from perdure.searching import lookups
from perdure.toolsets.contract import CONTRACT
from perdure.toolsets.read_result import read_result
from perdure.toolsets.target import check_policy, runs_elsewhere, target_of


def check_policies(durable: DurableAgent, where: str) -> None:
    """Raise `DeclarationError` for a policy of no tool, one that never applies, and one that a contract contradicts."""
    tools, complete = static_tools(durable)
    found = open_toolsets(durable)
    for pattern, policy in durable.policies.items():
        what = f"{where}: policy {pattern!r}"
        check_function(f"{what}: dispatch", policy.dispatch, 1)
        if policy.breaker is not None:
            _check_breaker(durable, pattern, tools)
        if complete or pattern in tools:
            check_kept(durable, ruled_by(durable, pattern, tools), policy, what)
        if policy.result is not None:
            check_type(policy.result, f"{what}: result")
            _check_contracts(durable, pattern, tools, what)
        matched = [name for name in [*tools, *lookups(durable)] if fnmatchcase(name, pattern)]
        if not matched and not any(may_match(pattern, at.prefix) for at in found):
            raise DeclarationError(f"{what} matches no tool. {_known(pattern, tools, found)}")
        if complete and all(durable.rule(name) != pattern for name in matched):
            others = sorted({durable.rule(name) for name in matched})
            raise DeclarationError(
                f"{what} never applies: {matched} have {others}. An exact name wins, then the first pattern that fits"
            )


def _known(pattern: str, tools: Iterable[str], found: Iterable[Open]) -> str:
    names = list(tools)
    others = "".join(f"; those of {at.label} begin with {at.prefix!r}" for at in found)
    return f"Known tools: {names}{others}.{did_you_mean(pattern, names)}"


def _check_breaker(durable: DurableAgent, pattern: str, tools: dict[str, ToolDefinition]) -> None:
    """A breaker is kept by the worker that runs the tool: one that runs elsewhere has none."""
    matching = ruled_by(durable, pattern, tools).values()
    if matching and all(map(runs_elsewhere, matching)):
        raise DeclarationError(
            f"agent {durable.name!r}: policy {pattern!r}: breaker={durable.policies[pattern].breaker!r} has no effect: "
            f"{[tool.name for tool in matching]} don't run on a worker of the agent"
        )


def check_targets(durable: DurableAgent, where: str) -> None:
    """Raise `DeclarationError` for a policy that can't be kept, since somebody else runs the tool."""
    for name, tool in static_tools(durable)[0].items():
        target = target_of(tool)
        if target is not None:
            rule = f"policy {durable.rule(name)!r}" if durable.rule(name) else "which no policy is for"
            check_policy(target, durable.policy(name), f"{where}: tool {name!r}, {rule}")


def _check_contracts(durable: DurableAgent, pattern: str, tools: dict[str, ToolDefinition], what: str) -> None:
    for name, tool in ruled_by(durable, pattern, tools).items():
        if CONTRACT in (tool.metadata or {}):
            raise DeclarationError(
                f"{what}: result=… is for tools without a contract; that of {name!r} says what it is"
            )


def check_reader(durable: DurableAgent, where: str) -> None:
    """Raise `DeclarationError` where a result is kept that the model couldn't read."""
    keeping = [name for name, policy in durable.policies.items() if policy.on_large_result == "store"]
    if keeping and not any(_reads(toolset) for toolset in durable.agent.toolsets):
        raise DeclarationError(
            f"{where}: policies {keeping} keep large results, which the model reads with a tool that the agent hasn't: "
            "Agent(…, toolsets=[read_result]), from perdure.toolsets.read_result"
        )


def _reads(toolset: Any) -> bool:
    return any(part is read_result for part in every(toolset))
