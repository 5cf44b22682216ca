"""What a thing to be compared has to offer."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any
from uuid import uuid4

from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Replayer

MODULES = {
    "perdure": "benchmarks.perdure_peer",
    "capability": "benchmarks.capability",
    "bare": "benchmarks.bare",
}
"""Imported only when asked for, so that one peer that can't be imported doesn't stop the others."""


@dataclass(frozen=True)
class Peer:
    """One of the things compared."""

    name: str
    workflow: str
    """The workflow type."""
    tool_activity: str
    """The activity type of a tool call: there is one per step."""
    queue: str
    connect: Callable[[str], Awaitable[Client]]
    """Makes a client for the server at an address."""
    serve: Callable[[Client], AbstractAsyncContextManager[object]]
    """A worker that runs while entered."""
    request: Callable[[int], object]
    """The workflow's argument for a number of steps; negative: a run that waits in its first tool call."""
    replayer: Callable[[], Replayer]


def load(name: str) -> Peer:
    """The peer called `name`."""
    peer: Peer = import_module(MODULES[name]).PEER
    return peer


async def start(client: Client, peer: Peer, steps: int, bound: timedelta) -> WorkflowHandle[Any, Any]:
    """Start a run of `steps` steps that the server ends after `bound`."""
    return await client.start_workflow(
        peer.workflow,
        peer.request(steps),
        id=f"bench-{peer.name}-{steps}-{uuid4().hex[:8]}",
        task_queue=peer.queue,
        execution_timeout=bound,
    )
