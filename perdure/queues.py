"""Task queues of their own for tools: how much of them runs at once, how fast, and which worker serves them.

The limits are Temporal's. A call that waits for one waits on the server, with no activity open: none of its times but
`schedule_to_start` has begun.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from perdure.agent import DurableAgent
from perdure.checks.known import ruled_by, static_tools
from perdure.errors import DeclarationError, RootMissing
from perdure.names import check_name
from perdure.numbers import positive, whole
from perdure.toolsets.folder import ROOT, Folder
from perdure.toolsets.target import runs_elsewhere
from perdure.typed import check_value


@dataclass(frozen=True, kw_only=True)
class TaskQueue:
    """The limits of a queue, under the names that Temporal's `Worker` gives them."""

    max_concurrent_activities: int | None = None
    """Calls that one worker runs at once; `None`: as many as of everything else."""
    max_activities_per_second: float | None = None
    """Calls that one worker begins in a second."""
    max_task_queue_activities_per_second: float | None = None
    """Calls that all workers together begin in a second. Kept by the server, which spreads it over the queue's
    partitions and allows short bursts; the last worker that polls sets it, so give it the same value everywhere."""

    def __post_init__(self) -> None:
        most = self.max_concurrent_activities
        if most is not None and not whole(most):
            raise DeclarationError(f"max_concurrent_activities={most!r} must be a whole number, at least 1")
        for name in ("max_activities_per_second", "max_task_queue_activities_per_second"):
            value: float | None = getattr(self, name)
            if value is not None and not positive(value):
                raise DeclarationError(f"{name}={value!r} must be a finite number, more than 0")


def check_queues(queues: Mapping[str, TaskQueue] | None) -> None:
    """Raise `DeclarationError` for what isn't a queue, or can't be its name."""
    check_value(queues, Mapping[Any, TaskQueue] | None, "task_queues")
    for name in queues or {}:
        check_name(name, "task_queues: name")


def check_served(durable: DurableAgent, queues: Collection[str]) -> None:
    """Raise `DeclarationError` where a policy names a queue that isn't declared: the calls would wait for ever.

    The queue of tools that run elsewhere (an activity of another program) is none of ours.
    """
    tools, _ = static_tools(durable)
    for pattern, policy in durable.policies.items():
        matching = ruled_by(durable, pattern, tools).values()
        elsewhere = matching and all(map(runs_elsewhere, matching))
        if policy.task_queue is not None and policy.task_queue not in queues and not elsewhere:
            raise DeclarationError(
                f"agent {durable.name!r}: policy {pattern!r} puts its tools on the task queue {policy.task_queue!r}, "
                f"which no worker would serve. Declare it: App(task_queues={{{policy.task_queue!r}: TaskQueue(…)}}). "
                f"Known queues: {sorted(queues)}"
            )


def check_roots(agents: Iterable[DurableAgent], queues: Collection[str], runs: bool) -> None:
    """Raise `DeclarationError` where the root folder of a tool that this worker serves isn't there.

    `queues`: the queues of tools that it serves; `runs`: whether it serves the runs, and the tools without a queue.
    """
    for durable in agents:
        for name, tool in static_tools(durable)[0].items():
            root, queue = (tool.metadata or {}).get(ROOT), durable.policy(name).task_queue
            if root is None or (queue not in queues if queue else not runs):
                continue
            try:
                os.close(Folder(root).opened())
            except RootMissing as error:
                raise DeclarationError(
                    f"agent {durable.name!r}: tool {name!r}: {error}. Make it, or give the tool a queue that only a "
                    "worker with the folder serves: ToolPolicy(task_queue=…), `perdure worker --only` and `--without`"
                ) from None


def served_queues(
    declared: Mapping[str, TaskQueue], own: str, only: Iterable[str] = (), without: Iterable[str] = ()
) -> dict[str, TaskQueue]:
    """The declared queues that a worker serves; `own` is the queue on which it serves runs.

    Raises `DeclarationError` for names that aren't declared, and where `own` is one of the declared.
    """
    only, without = list(only), list(without)
    _check_known([*only, *without], declared)
    if only and without:
        raise DeclarationError(f"only={only!r} and without={without!r}: name either what is served or what isn't")
    if own in declared and not only:
        raise DeclarationError(
            f"task_queues[{own!r}] is the queue on which this worker serves runs: give the tools another one, or serve "
            "runs on another with task_queue=… (`--task-queue`)"
        )
    return {name: queue for name, queue in declared.items() if name not in without and (not only or name in only)}


def _check_known(names: Collection[str], declared: Mapping[str, TaskQueue]) -> None:
    if unknown := sorted(set(names) - set(declared)):
        raise DeclarationError(
            f"no queue is named {unknown[0]!r}. Known queues, of App(task_queues=…): {sorted(declared)}"
        )
