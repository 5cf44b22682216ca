"""The start of the workflow: whatever is sent, a run ends typed, and never hangs. Then: test_entry_points_open."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload, Payloads, WorkflowType
from temporalio.api.enums.v1 import EventType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from perdure.activities.model_request import ModelRequests
from perdure.activities.prepare_run import PrepareRun
from perdure.activities.runtime import Runtime
from perdure.activities.tool_call import ToolCalls
from perdure.workflows.agent import AgentWorkflow
from tests.harness import Handle, Runs, failure_of, replay, working
from tests.held import talker

WITHIN = timedelta(seconds=10)


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
