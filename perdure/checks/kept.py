"""Whether what a policy says means anything where others run the calls of its tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from pydantic_ai import FunctionToolset
from pydantic_ai.tools import ToolDefinition

from perdure.agent import DurableAgent
from perdure.errors import DeclarationError
from perdure.listing import every
from perdure.toolsets.ignored import ignored
from perdure.toolsets.target import target_of


def check_kept(durable: DurableAgent, pattern: str, tools: Mapping[str, ToolDefinition], what: str) -> None:
    """Raise `DeclarationError` for an option that none of the tools of the policy keeps to."""
    policy = durable.policies[pattern]
    given = [one.name for one in fields(policy) if getattr(policy, one.name) != one.default]
    targets = [target_of(tool) for tool in tools.values()]
    left = [{} if target is None else dict(ignored(target, policy)) for target in targets]
    waiting = ("wait", "dispatch", "on_timeout") if _defers(durable) else ()
    for name in given:
        if name not in waiting and left and all(name in one for one in left):
            raise DeclarationError(
                f"{what}: {name}={getattr(policy, name)!r} has no effect on {list(tools)}: {left[0][name]}"
            )


def _defers(durable: DurableAgent) -> bool:
    """Whether a validator may send a call outside that others would run."""
    parts = [part for toolset in durable.agent.toolsets for part in every(toolset) if isinstance(part, FunctionToolset)]
    tools = [tool for part in parts for tool in part.tools.values()]
    return any(tool.args_validator is not None and target_of(tool.tool_def) is not None for tool in tools)
