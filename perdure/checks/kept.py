"""Whether what a policy says means anything where others run the calls of its tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from pydantic_ai import FunctionToolset
from pydantic_ai.tools import ToolDefinition

from perdure.agent import DurableAgent
from perdure.contracts import Target
from perdure.errors import DeclarationError
from perdure.listing import every
from perdure.policy import ToolPolicy
from perdure.toolsets.target import target_of

OUTSIDE = "its result doesn't come from outside"
RUN = "what answers the call is a run: it is begun once, and waits for a worker; timeout is its deadline"
HANDED = "a handoff only asks whether the other agent takes the conversation"
ALL_TIME = "timeout is all of its time, after which nothing is repeated: 'fail' is the one choice"
OPERATION = (
    "task_queue and attempts don't apply to a Nexus operation: its endpoint has a queue, and it is repeated until its "
    "timeout (an hour where there is none)"
)
GATE = ("approval", "on_large_result", "breaker")
"""What means something for every tool, or has a check of its own."""


def check_kept(durable: DurableAgent, tools: Mapping[str, ToolDefinition], policy: ToolPolicy, what: str) -> None:
    """Raise `DeclarationError` for an option that none of the tools of the policy keeps to."""
    given = [one.name for one in fields(policy) if getattr(policy, one.name) != one.default]
    targets = [target_of(tool) for tool in tools.values()]
    ignored = [{} if target is None else dict(_ignored(target, policy)) for target in targets]
    waiting = ("wait", "dispatch", "on_timeout") if _defers(durable) else ()
    for name in given:
        if name not in waiting and ignored and all(name in one for one in ignored):
            raise DeclarationError(
                f"{what}: {name}={getattr(policy, name)!r} has no effect on {list(tools)}: {ignored[0][name]}"
            )


def _ignored(target: Target, policy: ToolPolicy) -> Iterator[tuple[str, str]]:
    """The options that a tool doesn't keep to, each with the reason."""
    yield from (("wait", OUTSIDE), ("dispatch", OUTSIDE))
    match target.kind:
        case "agent":
            yield from ((name, RUN) for name in ("on_timeout", "schedule_to_start", "backoff", "heartbeat"))
            if policy.attempts != 1:
                yield "attempts", RUN
        case "handoff":
            yield from ((one.name, HANDED) for one in fields(policy) if one.name not in GATE)
        case "nexus":
            yield from ((name, OPERATION) for name in ("attempts", "task_queue", "backoff"))
            yield "heartbeat", "a Nexus operation sends none"
        case "workflow":
            yield "schedule_to_start", "a workflow has no schedule_to_start: use timeout, which is all of its time"
            yield "heartbeat", "a workflow sends none"
        case _:
            if not target.heartbeats:
                yield "heartbeat", "the activity sends none, unless it is declared with heartbeats=True"
    if target.kind in ("nexus", "workflow") and policy.on_timeout == "retry":
        yield "on_timeout", ALL_TIME
    if target.kind in ("nexus", "workflow", "activity") and policy.on_timeout == "report" and policy.effect != "unsafe":
        yield "on_timeout", "a call that may be repeated is 'failed' when its time is over"


def _defers(durable: DurableAgent) -> bool:
    """Whether a validator may send a call outside that others would run."""
    parts = [part for toolset in durable.agent.toolsets for part in every(toolset) if isinstance(part, FunctionToolset)]
    tools = [tool for part in parts for tool in part.tools.values()]
    return any(tool.args_validator is not None and target_of(tool.tool_def) is not None for tool in tools)
