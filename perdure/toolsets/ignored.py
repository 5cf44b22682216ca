"""What of a policy means nothing where others run the calls of a tool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from perdure.contracts import Target
from perdure.policy import ToolPolicy

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


def ignored(target: Target, policy: ToolPolicy) -> Iterator[tuple[str, str]]:
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
