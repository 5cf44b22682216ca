"""Pydantic AI's own Temporal capability, set up as its documentation does."""

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Replayer, Worker

with workflow.unsafe.imports_passed_through():
    from pydantic_ai import UsageLimits
    from pydantic_ai.durable_exec.temporal import PydanticAIPlugin, PydanticAIWorkflow, TemporalDurability

    from benchmarks.model import build_agent, prompt_for
    from benchmarks.peer import Peer

QUEUE = "bench-capability"
AGENT = build_agent("bench", capabilities=[TemporalDurability[None]()])


@workflow.defn
class CapabilityWorkflow(PydanticAIWorkflow):
    """One agent run in the workflow; the capability moves requests and tool calls into activities."""

    __pydantic_ai_agents__ = [AGENT]

    @workflow.run
    async def run(self, prompt: str) -> str:
        """Run the scripted agent, without Pydantic AI's default limit of 50 requests."""
        result = await AGENT.run(prompt, usage_limits=UsageLimits(request_limit=None))
        return result.output


async def connect(address: str) -> Client:
    """A client with the capability's plugin, which workers made from it inherit."""
    return await Client.connect(address, plugins=[PydanticAIPlugin()])


def serve(client: Client) -> Worker:
    """A worker; the plugin registers the agent's activities."""
    return Worker(client, task_queue=QUEUE, workflows=[CapabilityWorkflow])


def replayer() -> Replayer:
    """Replays `CapabilityWorkflow`."""
    return Replayer(workflows=[CapabilityWorkflow], plugins=[PydanticAIPlugin()])


def request(steps: int) -> object:
    """The workflow's argument."""
    return prompt_for(steps)


PEER = Peer(
    "capability",
    "CapabilityWorkflow",
    "agent__bench__toolset__pages__call_tool",
    QUEUE,
    connect,
    serve,
    request,
    replayer,
)
