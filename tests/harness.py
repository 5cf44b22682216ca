"""What tests of behaviour share: a worker around an app, runs on it, and what must hold after every run."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from perdure import App
from perdure.activities.runtime import Runtime
from perdure.activities.transcript import Conversation
from perdure.contracts import TranscriptPage
from perdure.converter import data_converter
from perdure.worker import serving
from perdure.workflows.agent import AgentWorkflow

Handle = WorkflowHandle[Any, Any]
OF_THE_SERVER = {
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
}
"""A task that the server itself gives up, to make a new one: more than 2 MB of events came while it ran, it ended the
run while something new came, or the run was reset there."""
SANDBOX = SandboxRestrictions.default.with_passthrough_modules("beartype", "_pytest")
"""Import hooks that a library and pytest put into a process of tests aren't loaded anew for every replay: they took
nine tenths of its time. perdure's modules are."""
TIMEOUT = timedelta(seconds=150)
"""A hang is a failure that must show."""
LONG = timedelta(minutes=10)
"""For a run of many turns or megabytes: without a cache each workflow task replays them."""


class Sandbox(SandboxedWorkflowRunner):
    """Loads the workflow once for a replay: Temporal's own does it before that too, to see whether it can."""

    def prepare_workflow(self, defn: Any) -> None:
        """Nothing: a replay that can't load it fails."""


@dataclass
class Runs:
    """Starts runs on a queue of its own and remembers them."""

    client: Client
    task_queue: str
    worker: Worker | None = None
    runtime: Runtime | None = None
    handles: list[Handle] = field(default_factory=list[Handle])

    async def start(self, agent: str, prompt: Any = None, *, timeout: timedelta = TIMEOUT, **request: Any) -> Handle:
        """Start a run with the plain JSON a stranger would send; without a prompt, a session without one."""
        asked = {"agent": agent, **({} if prompt is None else {"prompt": prompt}), **request}
        handle: Handle = await self.client.start_workflow(
            "AgentWorkflow",
            asked,
            id=f"run-{uuid.uuid4().hex[:12]}",
            task_queue=self.task_queue,
            execution_timeout=timeout,
        )
        self.handles.append(handle)
        return handle

    async def run(self, agent: str, prompt: Any, **request: Any) -> dict[str, Any]:
        """Start a run and return its result, as JSON."""
        return await (await self.start(agent, prompt, **request)).result()

    async def failure(self, agent: str, prompt: Any, **request: Any) -> ApplicationError:
        """Start a run that must fail, and return its typed failure."""
        return await failure_of(await self.start(agent, prompt, **request))


async def failure_of(handle: Handle) -> ApplicationError:
    """The typed failure of a run that must fail."""
    with pytest.raises(WorkflowFailureError) as raised:
        await handle.result()
    assert isinstance(raised.value.cause, ApplicationError), raised.value.cause
    return raised.value.cause


def with_store(client: Client, converter: DataConverter | None = None) -> Client:
    """The client with the data converter of the environment, or with another."""
    config = client.config()
    config["data_converter"] = converter or data_converter()
    return Client(**config)


@asynccontextmanager
async def working(
    client: Client, app: App, *, cache: int = 1000, task_queue: str | None = None, check: bool = True, **options: Any
) -> AsyncGenerator[Runs]:
    """A worker for `app` on a fresh queue. When the block has ended, what must hold of its runs is checked."""
    runs = Runs(client, task_queue or f"q-{uuid.uuid4().hex[:12]}")
    options.setdefault("grace", timedelta(seconds=1))
    async with serving(client, app, task_queue=runs.task_queue, max_cached_workflows=cache, **options) as worker:
        runs.worker = worker
        yield runs
        if check:
            for handle in runs.handles:
                await check_run(handle)


async def check_run(handle: Handle, *, sandboxed: bool = True) -> None:
    """The invariants of every run: it replays, no workflow task failed, each call has exactly one answer."""
    for history in await chain(handle):
        check_tasks(history)
        await replay(history, sandboxed=sandboxed)
    check_answers(await messages(handle))


async def chain(handle: Handle) -> list[WorkflowHistory]:
    """The histories of a run and of those it continues, the latest first."""
    client: Client = handle._client  # pyright: ignore[reportPrivateUsage]
    histories = [await handle.fetch_history()]
    while earlier := histories[-1].events[0].workflow_execution_started_event_attributes.continued_execution_run_id:
        histories.append(await client.get_workflow_handle(handle.id, run_id=earlier).fetch_history())
    return histories


def check_tasks(history: WorkflowHistory) -> None:
    """No workflow task failed but those that the server itself gave up."""
    events = [event for event in history.events if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED]
    failed = [event.workflow_task_failed_event_attributes for event in events]
    own = [one for one in failed if one.cause not in OF_THE_SERVER]
    assert not own, own[0]


async def replay(history: WorkflowHistory, *, sandboxed: bool = True) -> None:
    """Replay a history with a freshly loaded workflow. Raises on nondeterminism.

    Without the sandbox in a third of the time, but then a look at the clock isn't refused.
    """
    runner = Sandbox(restrictions=SANDBOX) if sandboxed else UnsandboxedWorkflowRunner()
    await Replayer(
        workflows=[AgentWorkflow], data_converter=data_converter(), workflow_runner=runner, build_id="replay"
    ).replay_workflow(history)


async def conversation(handle: Handle) -> Conversation:
    """The whole transcript of a run, or what the workflow still has of it, read page by page."""
    page: TranscriptPage = await handle.query("transcript", {}, result_type=TranscriptPage)
    base, entries = page.base, list(page.entries)
    while base.length + len(entries) < page.total:
        page = await handle.query("transcript", {"start": base.length + len(entries)}, result_type=TranscriptPage)
        entries += page.entries
    return Conversation(mark=base).extended(entries)


async def messages(handle: Handle) -> list[ModelMessage]:
    """The messages of a run, with the answers that no model has read yet."""
    whole = await conversation(handle)
    return [*whole.messages, *([whole.request()] if whole.pending else [])]


def check_answers(conversation: Sequence[ModelMessage]) -> None:
    """Every call has exactly one answer with its id, in the next request, and no answer lacks a call."""
    for index, message in enumerate(conversation):
        if not isinstance(message, ModelResponse):
            continue
        calls = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
        following = conversation[index + 1] if index + 1 < len(conversation) else ModelRequest(parts=[])
        answers = [part.tool_call_id for part in following.parts if isinstance(part, ToolReturnPart)]
        assert sorted(calls) == sorted(answers), f"calls {calls} were answered {answers}"


async def activities(handle: Handle) -> list[str]:
    """The types of the activities of a run after `prepare_run`, in the order they were scheduled."""
    history = await handle.fetch_history()
    scheduled = [
        event.activity_task_scheduled_event_attributes.activity_type.name
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]
    return [name for name in scheduled if name != "prepare_run"]


async def attempts(handle: Handle) -> list[int]:
    """The attempt at which each activity of a run after `prepare_run` was taken last, in order."""
    history = await handle.fetch_history()
    started = EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED
    found = [e.activity_task_started_event_attributes.attempt for e in history.events if e.event_type == started]
    return found[1:]


async def until(condition: Callable[[], bool | Awaitable[bool]], *, seconds: float = 90.0, every: float = 0.02) -> None:
    """Wait until `condition` holds; it may be a coroutine function that asks the server."""
    import asyncio
    import inspect

    async with asyncio.timeout(seconds):
        while True:
            value = condition()
            if await value if inspect.isawaitable(value) else value:
                return
            await asyncio.sleep(every)
