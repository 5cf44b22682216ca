"""One measured run: bytes, events, wall time, replay time."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowHistory
from temporalio.exceptions import TerminatedError, TimeoutError

from benchmarks.peer import Peer, start

COMPLETED = "completed"


@dataclass(frozen=True)
class Run:
    """What one run cost, summed over continue-as-new."""

    peer: str
    steps: int
    """Steps that were asked for."""
    outcome: str
    """`completed`, or how the run ended instead."""
    taken: int
    """Steps whose tool call was scheduled."""
    runs: int
    """Length of the continue-as-new chain."""
    history_bytes: int
    """As the server counts them against its limit of 50 MB."""
    events: int
    seconds: float
    """From the start of the workflow to its result in the client."""
    replay_seconds: float | None = None

    @property
    def seconds_per_step(self) -> float:
        """Wall time of one step."""
        return self.seconds / max(self.taken, 1)


async def measure(client: Client, peer: Peer, steps: int, *, bound: timedelta, replays: int = 0) -> Run:
    """Start one run, wait for its end however it ends, and count; `replays` > 0 times the replay too."""
    started = time.perf_counter()
    handle = await start(client, peer, steps, bound)
    outcome = await _outcome(handle)
    seconds = time.perf_counter() - started
    chain = await _chain(client, handle)
    return Run(
        peer=peer.name,
        steps=steps,
        outcome=outcome,
        taken=sum(_tool_calls(peer, history) for history in chain),
        runs=len(chain),
        history_bytes=sum([await _size(client, history) for history in chain]),
        events=sum(len(history.events) for history in chain),
        seconds=seconds,
        replay_seconds=await _replay(peer, chain, replays) if replays and outcome == COMPLETED else None,
    )


async def _outcome(handle: WorkflowHandle[Any, Any]) -> str:
    try:
        await handle.result()
    except WorkflowFailureError as error:
        if isinstance(error.cause, TerminatedError):
            return "terminated by the server"
        if isinstance(error.cause, TimeoutError):
            return "stopped at the time limit"
        return f"failed ({str(error.cause)[:80]})"
    return COMPLETED


async def _chain(client: Client, handle: WorkflowHandle[Any, Any]) -> list[WorkflowHistory]:
    chain: list[WorkflowHistory] = []
    run_id = handle.first_execution_run_id
    while run_id:
        chain.append(await client.get_workflow_handle(handle.id, run_id=run_id).fetch_history())
        run_id = chain[-1].events[-1].workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    return chain


async def _size(client: Client, history: WorkflowHistory) -> int:
    handle = client.get_workflow_handle(history.workflow_id, run_id=history.run_id)
    description = await handle.describe()
    return description.raw_description.workflow_execution_info.history_size_bytes


def _tool_calls(peer: Peer, history: WorkflowHistory) -> int:
    scheduled = (event.activity_task_scheduled_event_attributes for event in history.events)
    return sum(attributes.activity_type.name == peer.tool_activity for attributes in scheduled)


async def _replay(peer: Peer, chain: Sequence[WorkflowHistory], times: int) -> float:
    replayer = peer.replayer()
    seconds: list[float] = []
    for _ in range(times + 1):  # the first one warms up
        started = time.perf_counter()
        for history in chain:
            await replayer.replay_workflow(history)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])


async def step_seconds(client: Client, agent: str, task_queue: str, steps: int) -> float:
    """Run an agent of perdure once; the time of each of its `steps`."""
    began = time.perf_counter()
    await client.execute_workflow(
        "AgentWorkflow",
        {"agent": agent, "prompt": "go"},
        id=f"bench-{agent}-{uuid4().hex[:8]}",
        task_queue=task_queue,
        execution_timeout=timedelta(minutes=3),
    )
    return (time.perf_counter() - began) / steps
