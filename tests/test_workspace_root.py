"""A root folder that isn't there: the worker doesn't start, and a call ends its run, without another attempt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from temporalio.client import Client

from perdure import App, DeclarationError, DurableAgent, TaskQueue, ToolPolicy
from perdure.errors import RootMissing
from perdure.queues import check_roots
from perdure.toolsets.apply_patch import patching
from perdure.toolsets.folder import Folder
from perdure.toolsets.workspace import workspace
from tests.command import ROOT, running
from tests.harness import failure_of, working
from tests.scripts import Script

POLICIES = {name: ToolPolicy(effect="safe", attempts=5) for name in ("list_files", "read_file")}
CALLS: list[dict[str, Any]] = [
    {"list_files": {}},
    {"read_file": {"path": "a"}},
    {"write_file": {"path": "a", "text": "x"}},
    {"apply_patch": {"type": "create_file", "path": "a", "diff": "+x"}},
]


def coder(root: Any, *turns: Any, policies: dict[str, ToolPolicy] | None = None, **options: Any) -> App:
    """An agent with all tools of a root folder, and what a worker is told of its queues."""
    toolsets = [workspace(root, gated=False), patching(root, gated=False)]
    agent = Agent(Script(*turns).model, name="coder", toolsets=toolsets, deps_type=Any)
    return App(agents=[DurableAgent(agent, policies=policies or POLICIES, deps=params_alone)], **options)


def params_alone(params: Any, resources: Any) -> Any:
    """The deps are the params."""
    return params


def of_the_run(ctx: RunContext[Any]) -> str:
    """The root that a run was started with."""
    return ctx.deps


@pytest.mark.parametrize("call", CALLS, ids=lambda call: next(iter(call)))
async def test_a_call_ends_the_run_at_once(client: Client, tmp_path: Path, call: dict[str, Any]) -> None:
    gone = tmp_path / "gone"
    async with working(client, coder(of_the_run, call, "done")) as runs:
        handle = await runs.start("coder", "go", params=str(gone))
        failure = await failure_of(handle)
        history = await handle.fetch_history()
    assert failure.type == "RootMissing"
    assert failure.message == f"the root folder {str(gone)!r} can't be used on this worker: No such file or directory"
    started = [event.activity_task_started_event_attributes for event in history.events]
    assert {event.attempt for event in started if event.attempt} == {1}
    assert not gone.exists()


async def test_a_root_that_is_gone_while_the_worker_runs(client: Client, tmp_path: Path, cache: int) -> None:
    root = tmp_path / "checkout"
    root.mkdir()
    async with working(client, coder(root, {"list_files": {}}, "done"), cache=cache) as runs:
        root.rmdir()
        root.write_text("a file")
        failure = await runs.failure("coder", "go")
    assert failure.type == "RootMissing"
    assert failure.message.endswith("Not a directory")


async def test_a_worker_with_a_tool_whose_folder_is_missing_does_not_start(client: Client, tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match=r"tool 'apply_patch': the root folder '.*gone' can't be used on this"):
        async with working(client, coder(tmp_path / "gone")):
            raise AssertionError("it started")


async def test_perdure_worker_says_so_in_one_line(client: Client, tmp_path: Path) -> None:
    text = f"from tests.test_workspace_root import *\napp = coder({str(tmp_path / 'gone')!r})\n"
    (tmp_path / "coders.py").write_text(text)
    address = client.service_client.config.target_host
    async with running("worker", "coders:app", address=address, PYTHONPATH=f"{tmp_path}:{ROOT}") as worker:
        done = await worker.end()
    assert (done.code, len(done.err.splitlines())) == (2, 1), done.err
    assert f"the root folder '{tmp_path / 'gone'}' can't be used on this worker" in done.err


def test_only_the_worker_that_serves_the_tools_needs_the_folder(tmp_path: Path) -> None:
    there = {"*": ToolPolicy(task_queue="checkout")}
    queues = {"checkout": TaskQueue(), "other": TaskQueue()}
    agents = coder(tmp_path / "gone", policies=there, task_queues=queues).agents.values()
    check_roots(agents, ["other"], runs=True)
    check_roots(agents, [], runs=True)
    with pytest.raises(DeclarationError, match="root folder"):
        check_roots(agents, ["checkout"], runs=False)
    check_roots(coder(tmp_path / "gone").agents.values(), ["checkout"], runs=False)
    check_roots(coder(of_the_run).agents.values(), [], runs=True)
    check_roots(coder(tmp_path).agents.values(), [], runs=True)


def test_a_link_in_a_circle_is_no_root(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(RootMissing, match="Too many levels"):
        Folder(tmp_path / "circle").names()
