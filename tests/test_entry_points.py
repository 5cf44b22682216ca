"""The entry points of the workflow: whatever is sent, a run ends typed or goes on, and never hangs."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent
from temporalio.api.common.v1 import Payload, Payloads, WorkflowType
from temporalio.api.enums.v1 import EventType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest
from temporalio.client import Client, WorkflowQueryFailedError, WorkflowUpdateFailedError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from perdure import App
from perdure.activities.model_request import ModelRequests
from perdure.activities.prepare_run import PrepareRun
from perdure.activities.runtime import Runtime
from perdure.activities.tool_call import ToolCalls
from perdure.workflows.agent import AgentWorkflow
from tests.harness import Handle, Runs, failure_of, replay, until, working
from tests.scripts import Script

WITHIN = timedelta(seconds=10)


def talker(*turns: Any, tools: Any = ()) -> App:
    return App(agents=[Agent(Script(*(turns or ("done",))).model, name="talks", tools=list(tools))])


async def started(runs: Runs, *args: Any) -> Handle:
    """A run started with any arguments at all."""
    return await runs.client.start_workflow(
        "AgentWorkflow",
        args=args,
        id=f"run-{uuid.uuid4().hex[:12]}",
        task_queue=runs.task_queue,
        execution_timeout=WITHIN,
    )


async def raw_started(runs: Runs, payloads: Payloads | None) -> Handle:
    """A run started by the plain service call, as any program may make it."""
    request = StartWorkflowExecutionRequest(
        namespace=runs.client.namespace,
        workflow_id=f"raw-{uuid.uuid4().hex[:12]}",
        workflow_type=WorkflowType(name="AgentWorkflow"),
        task_queue=TaskQueue(name=runs.task_queue),
        request_id=uuid.uuid4().hex,
        input=payloads,
    )
    request.workflow_execution_timeout.FromTimedelta(WITHIN)
    await runs.client.workflow_service.start_workflow_execution(request)
    return runs.client.get_workflow_handle(request.workflow_id)


async def refused(handle: Handle) -> ApplicationError:
    """The typed failure of a run that could not begin: soon, without a failed workflow task, and it replays."""
    failure = await failure_of(handle)
    history = await handle.fetch_history()
    assert not [e for e in history.events if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED]
    await replay(history)
    assert failure.non_retryable
    return failure


BAD_STARTS: dict[str, tuple[tuple[Any, ...], str]] = {
    "nothing": ((), "got 0 arguments"),
    "two": (({"agent": "talks", "prompt": "x"}, {}), "got 2 arguments"),
    "text": (("talks",), "got str"),
    "null": ((None,), "got NoneType"),
    "list": ((["talks"],), "got list"),
    "empty": (({},), "agent"),
    "unknown_field": (({"agent": "talks", "prompt": "x", "promt": "y"},), "promt"),
    "wrong_type": (({"agent": 7, "prompt": "x"},), "agent"),
    "wrong_limit": (({"agent": "talks", "prompt": "x", "limits": {"requests": "many"}},), "limits.requests"),
    "unknown_limit": (({"agent": "talks", "prompt": "x", "limits": {"steps": 1}},), "limits.steps"),
    "bad_part": (({"agent": "talks", "prompt": [{"kind": "no-such-part"}]},), "prompt"),
    "unknown_model": (({"agent": "talks", "prompt": "x", "model": "huge"},), "huge"),
    "raised_limit": (({"agent": "talks", "prompt": "x", "limits": {"turn_requests": 51}},), "limits.turn_requests=51"),
    "removed_limit": (
        ({"agent": "talks", "prompt": "x", "limits": {"turn_requests": None}},),
        "limits.turn_requests=None",
    ),
}


@pytest.mark.parametrize("name", list(BAD_STARTS))
async def test_a_bad_start_fails_at_once_as_an_invalid_request(client: Client, cache: int, name: str) -> None:
    args, named = BAD_STARTS[name]
    async with working(client, talker(), cache=cache) as runs:
        failure = await refused(await started(runs, *args))
    assert failure.type == "InvalidRequest"
    assert named in failure.message


@pytest.mark.parametrize(
    "payloads",
    [
        None,
        Payloads(),
        Payloads(payloads=[Payload(metadata={"encoding": b"json/plain"}, data=b"{not json")]),
        Payloads(payloads=[Payload(metadata={"encoding": b"binary/plain"}, data=b"\xff")]),
        Payloads(payloads=[Payload(metadata={"encoding": b"binary/unheard-of"}, data=b"x")]),
    ],
    ids=["none", "empty", "broken-json", "bytes", "unknown-encoding"],
)
async def test_a_start_by_a_plain_service_call_never_hangs(client: Client, payloads: Payloads | None) -> None:
    async with working(client, talker()) as runs:
        failure = await refused(await raw_started(runs, payloads))
    assert failure.type == "InvalidRequest"


async def test_an_unknown_agent_names_the_known_ones(client: Client, cache: int) -> None:
    async with working(client, talker(), cache=cache) as runs:
        failure = await refused(await started(runs, {"agent": "talk", "prompt": "x"}))
    assert failure.type == "UnknownAgent"
    assert "'talk'" in failure.message
    assert "['talks']" in failure.message


BAD_QUERIES: list[list[Any]] = [[7], [{"start": -1}], [{"begin": 0}], [{}, {}], ["0"]]


class Held:
    """An app whose run is held in a tool, so that somebody can talk to it."""

    def __init__(self) -> None:
        self.begun, self.release = asyncio.Event(), asyncio.Event()

        async def hold() -> str:
            self.begun.set()
            await self.release.wait()
            return "held"

        self.app = talker({"hold": {}}, "done", tools=[hold])


async def test_unknown_signals_are_kept_as_rejected(client: Client, cache: int) -> None:
    held = Held()
    async with working(client, held.app, cache=cache) as runs:
        handle = await runs.start("talks", "go")
        await handle.signal("early")
        await asyncio.wait_for(held.begun.wait(), 20)
        await handle.signal("aprove", {"call": "1.1"})
        await handle.signal("send", args=["a", "b"])
        await handle.signal("raw", RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b"{broken")))

        async def rejected() -> list[str]:
            return [row["signal"] for row in (await handle.query("status"))["rejected"]]

        async def all_rejected() -> bool:
            return (await handle.query("status"))["rejected_count"] == 64

        assert await rejected() == ["early", "aprove", "send", "raw"]
        for number in range(60):
            await handle.signal(f"noise-{number}")
        await until(all_rejected)
        assert await rejected() == [f"noise-{number}" for number in range(10, 60)]
        held.release.set()
        assert (await handle.result())["output"] == "done"
        assert await all_rejected()


@pytest.mark.parametrize("args", [[], [{"call": "1.1"}], ["a", "b"]], ids=["none", "one", "two"])
async def test_unknown_updates_are_refused_with_text(client: Client, cache: int, args: list[Any]) -> None:
    held = Held()
    async with working(client, held.app, cache=cache) as runs:
        handle = await runs.start("talks", "go")
        await asyncio.wait_for(held.begun.wait(), 20)
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await handle.execute_update("aprove", args=args)  # pyright: ignore[reportUnknownMemberType]
        assert "there is no update 'aprove'" in str(caught.value.cause)
        held.release.set()
        await handle.result()
        kinds = [event.event_type for event in (await handle.fetch_history()).events]
    assert EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED not in kinds


@pytest.mark.parametrize("args", [[], [1], [1, 2]], ids=["none", "one", "two"])
async def test_queries_answer_during_a_run_and_after_it(client: Client, cache: int, args: list[Any]) -> None:
    held = Held()
    async with working(client, held.app, cache=cache) as runs:
        handle = await runs.start("talks", "go")
        await asyncio.wait_for(held.begun.wait(), 20)
        for _ in range(2):
            with pytest.raises(WorkflowQueryFailedError, match="Known queries: status, transcript"):
                await handle.query("statuss", args=args)
            for bad in BAD_QUERIES:
                with pytest.raises(WorkflowQueryFailedError, match="start"):
                    await handle.query("transcript", args=bad)
            assert (await handle.query("status", args=args))["agent"] == "talks"
            assert (await handle.query("transcript", {"start": 10_000}))["entries"] == []
            assert len((await handle.query("transcript", {"max_bytes": 1}))["entries"]) == 1
            held.release.set()
            await handle.result()
        assert (await handle.query("status"))["state"] == "done"
        assert await handle.query("audit", args=args) == []


FAULTS = {
    "one_argument": "perdure.workflows.agent.one_argument",
    "prepare": "perdure.workflows.requests.RunPlan.model_validate",
    "lowered": "perdure.workflows.budget.lowered",
    "before_request": "perdure.workflows.budget.before_request",
    "model_retries": "perdure.workflows.requests._model_retries",
    "step": "perdure.workflows.requests.Step.model_validate",
    "segments": "perdure.workflows.turn.segments",
    "tool_options": "perdure.workflows.calls.idempotency_key",
    "outcome": "perdure.workflows.calls.CallOutcome.model_validate",
    "record": "perdure.workflows.turn.next_retries",
    "details": "perdure.workflows.details.markdown",
    "mark": "perdure.workflows.details.awaited",
    "result": "perdure.workflows.agent.fitting_result",
}


@pytest.mark.parametrize("name", list(FAULTS))
async def test_a_fault_inside_the_workflow_ends_the_run_typed(
    client: Client, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise ZeroDivisionError("a fault of perdure")

    def look() -> str:
        return "a view"

    monkeypatch.setattr(FAULTS[name], fail)
    runs = Runs(client, f"q-{uuid.uuid4().hex[:12]}")
    async with Runtime(talker({"look": {}}, "done", tools=[look])) as runtime:
        async with Worker(
            client,
            task_queue=runs.task_queue,
            workflows=[AgentWorkflow],
            activities=[
                PrepareRun(runtime).prepare_run,
                ModelRequests(runtime).model_request,
                ToolCalls(runtime).tool_call,
            ],
            workflow_runner=UnsandboxedWorkflowRunner(),
        ):
            handle = await started(runs, {"agent": "talks", "prompt": "x"})
            failure = await failure_of(handle)
            kinds = [event.event_type for event in (await handle.fetch_history()).events]
    assert failure.type == "InternalError"
    assert failure.message == "ZeroDivisionError: a fault of perdure"
    assert EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED not in kinds
