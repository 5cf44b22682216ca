"""A bare Temporal workflow with two no-op activities per step: what Temporal itself costs."""

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Replayer, Worker

with workflow.unsafe.imports_passed_through():
    from benchmarks.peer import Peer

QUEUE = "bench-bare"
TIMEOUT = timedelta(seconds=60)


@activity.defn
async def think(n: int) -> str:
    """Stands for the model request; returns 1 KB."""
    return "t" * 1024 + str(n)


@activity.defn
async def fetch(n: int) -> str:
    """Stands for the tool call; returns 1 KB."""
    return "f" * 1024 + str(n)


@workflow.defn
class BareWorkflow:
    """Two activities per step and one for the answer, each waited for; nothing is carried along."""

    @workflow.run
    async def run(self, steps: int) -> str:
        """Take `steps` steps and answer."""
        for n in range(steps):
            await workflow.execute_activity(think, n, start_to_close_timeout=TIMEOUT)
            await workflow.execute_activity(fetch, n, start_to_close_timeout=TIMEOUT)
        await workflow.execute_activity(think, steps, start_to_close_timeout=TIMEOUT)
        return "done"


async def connect(address: str) -> Client:
    """A client with Temporal's defaults."""
    return await Client.connect(address)


def serve(client: Client) -> Worker:
    """A worker with Temporal's defaults."""
    return Worker(client, task_queue=QUEUE, workflows=[BareWorkflow], activities=[think, fetch])


def replayer() -> Replayer:
    """Replays `BareWorkflow`."""
    return Replayer(workflows=[BareWorkflow])


def request(steps: int) -> object:
    """The workflow's argument."""
    return steps


PEER = Peer("bare", "BareWorkflow", "fetch", QUEUE, connect, serve, request, replayer)
