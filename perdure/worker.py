"""Build and run a worker. `python -m perdure.worker module:app` and `perdure worker module:app` are the same."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import uuid
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any, cast

from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from perdure.activities.check_content import check_content
from perdure.activities.check_edit import CheckEdit
from perdure.activities.check_endpoint import check_endpoint
from perdure.activities.check_result import CheckResult
from perdure.activities.compact import Compact
from perdure.activities.containment import Containment
from perdure.activities.model_request import ModelRequests
from perdure.activities.prepare_run import PrepareRun
from perdure.activities.runtime import Runtime
from perdure.activities.settle import Settle
from perdure.activities.telling import Telling
from perdure.activities.tool_call import ToolCalls
from perdure.activities.verify import Verify
from perdure.app import App
from perdure.contracts import TASK_QUEUE
from perdure.errors import DeclarationError
from perdure.queues import TaskQueue, check_roots, served_queues
from perdure.threads import give_threads
from perdure.workflows.agent import AgentWorkflow

STICKY_TIMEOUT = timedelta(seconds=3)
"""After a crash the next workflow task waits so long for the old worker; Temporal's 10 s would delay a restart."""
HEARTBEAT_THROTTLE = timedelta(milliseconds=100)
"""Live text is as old as this; Temporal's default of 60 s would show none of it."""
GRACE = timedelta(seconds=30)
"""What running activities get to end when the worker is told to stop. Temporal's default is none."""


def worker(
    client: Client,
    runtime: Runtime,
    *,
    task_queue: str = TASK_QUEUE,
    grace: timedelta = GRACE,
    max_cached_workflows: int = 1000,
    max_concurrent_activities: int = 200,
) -> Worker:
    """A Temporal worker for a runtime that is open. Use `serving` unless you build the worker's life yourself; the
    loop's threads (`perdure.threads.give_threads`) are then yours to give too.

    It runs workflows without Temporal's sandbox, which would load this package anew from disk for every run: a package
    that was changed or moved meanwhile would break every new run of a worker that is fine. No code of users runs in the
    workflow, and ours is held to determinism by tests, which do replay it in the sandbox.
    """
    return Worker(
        client,
        task_queue=task_queue,
        workflows=[AgentWorkflow],
        workflow_runner=UnsandboxedWorkflowRunner(),
        activities=_activities(runtime),
        max_cached_workflows=max_cached_workflows,
        max_concurrent_activities=max_concurrent_activities,
        sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
        **_common(grace),
    )


def _activities(runtime: Runtime) -> list[Callable[..., Any]]:
    telling = Telling(runtime)
    return [
        PrepareRun(runtime).prepare_run,
        ModelRequests(runtime).model_request,
        Compact(runtime).compact,
        Settle(runtime).settle,
        ToolCalls(runtime).tool_call,
        CheckEdit(runtime).check_edit,
        CheckResult(runtime).check_result,
        check_content,
        check_endpoint,
        Verify(runtime).verify,
        telling.notify,
        telling.dispatch,
    ]


def tool_worker(
    client: Client,
    runtime: Runtime,
    name: str,
    queue: TaskQueue,
    *,
    grace: timedelta = GRACE,
    max_concurrent_activities: int = 200,
) -> Worker:
    """A Temporal worker for the tool calls of one queue, and for nothing else."""
    return Worker(
        client,
        task_queue=name,
        activities=[ToolCalls(runtime).tool_call],
        max_concurrent_activities=queue.max_concurrent_activities or max_concurrent_activities,
        max_activities_per_second=queue.max_activities_per_second,
        max_task_queue_activities_per_second=queue.max_task_queue_activities_per_second,
        **_common(grace),
    )


def _common(grace: timedelta) -> dict[str, Any]:
    return {
        "graceful_shutdown_timeout": grace,
        "interceptors": [Containment()],
        "max_heartbeat_throttle_interval": HEARTBEAT_THROTTLE,
        "default_heartbeat_throttle_interval": HEARTBEAT_THROTTLE,
    }


@asynccontextmanager
async def serving(
    client: Client,
    app: App,
    *,
    task_queue: str = TASK_QUEUE,
    grace: timedelta = GRACE,
    max_cached_workflows: int = 1000,
    max_concurrent_activities: int = 200,
    only: Collection[str] = (),
    without: Collection[str] = (),
) -> AsyncGenerator[Worker]:
    """Serve `app` while the block runs: resources and agents are open, the worker polls.

    Beside `task_queue` a worker of its own serves each queue of `App(task_queues=…)`, in this process: `without` leaves
    some out, and with `only` nothing but the tools of those queues is served, no runs and no model requests. Yields the
    worker of the runs, or with `only` the first. The loop gets threads for as many calls as may run (`give_threads`).

    `client` must use `perdure.converter.data_converter()`. Raises `DeclarationError` for queues that aren't declared,
    and for a root folder of a tool that isn't there.
    """
    queues = served_queues(app.task_queues, task_queue, only, without)
    check_roots(app.agents.values(), queues, runs=not only)
    async with Runtime(app) as runtime:
        built = [
            tool_worker(client, runtime, name, queue, grace=grace, max_concurrent_activities=max_concurrent_activities)
            for name, queue in queues.items()
        ]
        if not only:
            runs = worker(
                client,
                runtime,
                task_queue=task_queue,
                grace=grace,
                max_cached_workflows=max_cached_workflows,
                max_concurrent_activities=max_concurrent_activities,
            )
            built.insert(0, runs)
        if runtime.holds_sessions:
            runtime.queue = f"{task_queue}@{uuid.uuid4().hex[:12]}"
            built.append(tool_worker(client, runtime, runtime.queue, TaskQueue(), grace=grace))
        give_threads(sum(cast("dict[str, int]", one.config())["max_concurrent_activities"] for one in built))
        async with _all_of(built):
            yield built[0]


@asynccontextmanager
async def _all_of(workers: list[Worker]) -> AsyncGenerator[None]:
    """Run workers while the block runs. They are told to stop together, so that their grace passes once."""
    async with AsyncExitStack() as stack:
        for one in workers:
            await stack.enter_async_context(one)
        try:
            yield
        finally:
            await asyncio.gather(*(one.shutdown() for one in workers))


def load_app(target: str) -> App:
    """The `App` that `module:attribute` names. Raises `DeclarationError`, saying what is there instead."""
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise DeclarationError(f"{target!r} is not of the form module:attribute, as in weather:app")
    if module_name.endswith(".py") or "/" in module_name:
        dotted = ".".join(part for part in module_name.removesuffix(".py").split("/") if part not in ("", "."))
        raise DeclarationError(f"{module_name!r} is a file, not a module: did you mean {dotted}:{attribute}?")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except SystemExit as error:
        raise DeclarationError(
            f"the module {module_name!r} called sys.exit({error.code!r}) while it was imported: do that only under "
            'if __name__ == "__main__"'
        ) from error
    except ModuleNotFoundError as error:
        if error.name != module_name.split(".")[0] and error.name != module_name:
            raise
        raise DeclarationError(f"there is no module {module_name!r} in {os.getcwd()} or among the packages") from error
    found = getattr(module, attribute, None)
    if not isinstance(found, App):
        known = sorted(name for name, value in vars(module).items() if isinstance(value, App))
        is_there = hasattr(module, attribute)
        what = (
            f"is {type(found).__name__}, not an App"
            if is_there
            else f"is not there: {module_name} has no {attribute!r}"
        )
        raise DeclarationError(f"{target!r} {what}. Apps in {module_name}: {known}")
    return found


def main() -> None:
    """The entry point of `python -m perdure.worker`."""
    from perdure.cli import main as cli

    cli(["worker", *sys.argv[1:]])


if __name__ == "__main__":
    main()
