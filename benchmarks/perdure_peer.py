"""perdure as a peer: the only file of the benchmarks that knows its API."""

from contextlib import AbstractAsyncContextManager

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from benchmarks.model import build_agent, prompt_for
from benchmarks.peer import Peer
from perdure import App, DurableAgent, Limits, ToolPolicy
from perdure.worker import serving
from perdure.workflows.agent import AgentWorkflow

QUEUE = "perdure"
LIMIT = 10_000
"""Requests of a run; the default is 50."""


async def connect(address: str) -> Client:
    """A client as `perdure.client` would make it."""
    return await Client.connect(address, data_converter=pydantic_data_converter)


def serve(client: Client) -> AbstractAsyncContextManager[object]:
    """A worker that serves the scripted agent."""
    agent = DurableAgent(
        build_agent("bench"), policies={"fetch": ToolPolicy(effect="safe")}, limits=Limits(turn_requests=LIMIT)
    )
    return serving(client, App(agents=[agent]), task_queue=QUEUE)


def replayer() -> Replayer:
    """Replays `AgentWorkflow`."""
    return Replayer(workflows=[AgentWorkflow], data_converter=pydantic_data_converter)


def request(steps: int) -> object:
    """The workflow's argument, a `RunRequest` as JSON."""
    return {"agent": "bench", "prompt": prompt_for(steps)}


PEER = Peer("perdure", "AgentWorkflow", "tool:fetch", QUEUE, connect, serve, request, replayer)
