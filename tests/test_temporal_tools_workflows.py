"""Tools that are workflows of others, run as children."""

from __future__ import annotations

import uuid

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from perdure import ToolPolicy
from tests.deciding import answers, cancelled
from tests.harness import Handle, activities, check_run, failure_of, until, working
from tests.packing import child_of, packing
from tests.remote import PackOrder, remote
from tests.resets import reset
from tests.scripts import Script


async def test_a_workflow_of_others_runs_as_a_child(client: Client, cache: int) -> None:
    script = Script({"pack": {"sku": "A-1"}}, "done")
    async with remote(client, workflows=[PackOrder]) as queue:
        async with working(client, packing(queue, script), cache=cache) as runs:
            handle = await runs.start("packer", "go")
            assert (await handle.result())["output"] == "done"
            ((outcome, text),) = (await answers(handle)).values()
            child = await child_of(client, handle)
            assert child.id.startswith(f"{handle.id}/1.1-")
            assert (outcome, text) == ("success", f'{{"by":"{child.id}","packed":"A-1"}}')
            assert await activities(handle) == ["model_request", "model_request"]


async def test_a_child_that_fails_is_told_by_its_type(client: Client) -> None:
    script = Script({"pack": {"sku": "A-1", "fail": True}}, "done")
    async with remote(client, workflows=[PackOrder]) as queue:
        async with working(client, packing(queue, script)) as runs:
            handle = await runs.start("packer", "go")
            await handle.result()
            assert list((await answers(handle)).values()) == [("failed", "The call failed: Broken.")]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (ToolPolicy(), ("failed", "The call failed: Jammed.")),
        (ToolPolicy(effect="idempotent", attempts=2, backoff=0.1), ("success", "")),
    ],
    ids=["once", "repeated"],
)
async def test_a_child_is_repeated_by_its_effect(client: Client, policy: ToolPolicy, expected: tuple[str, str]) -> None:
    script = Script({"pack": {"sku": "A-1", "flaky": True}}, "done")
    async with remote(client, workflows=[PackOrder]) as queue:
        async with working(client, packing(queue, script, policy)) as runs:
            handle = await runs.start("packer", "go")
            await handle.result()
            ((outcome, text),) = (await answers(handle)).values()
            assert (outcome, text if outcome == "failed" else "") == expected


async def test_a_later_run_with_the_same_id_begins_a_child_of_its_own(client: Client) -> None:
    script = Script({"pack": {"sku": "A-1"}}, "done")
    async with remote(client, workflows=[PackOrder]) as queue:
        async with working(client, packing(queue, script)) as runs:
            name, begun = f"nightly-{uuid.uuid4().hex[:8]}", set[str]()
            for _ in range(2):
                handle: Handle = await client.start_workflow(
                    "AgentWorkflow", {"agent": "packer", "prompt": "go"}, id=name, task_queue=runs.task_queue
                )
                await handle.result()
                begun.add((await child_of(client, handle)).id)
                assert [outcome for outcome, _ in (await answers(handle)).values()] == ["success"]
            assert len(begun) == 2


async def test_a_child_is_cancelled_with_the_run_and_waited_for(client: Client, cache: int) -> None:
    script = Script({"pack": {"sku": "A-1", "wait": True, "cleanup": True}})
    async with remote(client, workflows=[PackOrder]) as queue:
        async with working(client, packing(queue, script), cache=cache) as runs:
            handle = await runs.start("packer", "go")
            child = await child_of(client, handle)
            await cancelled(handle)
            assert (await child.describe()).status == WorkflowExecutionStatus.CANCELED
            assert await child.query("cleaned")
            ((outcome, text),) = (await answers(handle)).values()
            assert (outcome, text[:22]) == ("interrupted", "The run was cancelled.")
            assert (await child.describe()).close_time < (await handle.describe()).close_time  # type: ignore[operator]


@pytest.mark.parametrize("how", ["terminate", "cancel"])
async def test_a_child_that_somebody_else_ends_is_reported(client: Client, how: str) -> None:
    script = Script({"pack": {"sku": "A-1", "wait": True}}, "done")
    async with remote(client, workflows=[PackOrder]) as queue:
        async with working(client, packing(queue, script)) as runs:
            handle = await runs.start("packer", "go")
            child = await child_of(client, handle)
            await (child.terminate() if how == "terminate" else child.cancel())
            assert (await handle.result())["output"] == "done"
            word = "terminated" if how == "terminate" else "cancelled"
            ((outcome, text),) = (await answers(handle)).values()
            assert outcome == "interrupted"
            assert text.startswith(f"The call was {word} by somebody else.")


async def test_the_timeout_of_the_policy_is_all_the_time_of_a_child(client: Client) -> None:
    script = Script({"pack": {"sku": "A-1", "wait": True}})
    policy = ToolPolicy(timeout=1, on_timeout="fail")
    async with remote(client, workflows=[PackOrder]) as queue:
        async with working(client, packing(queue, script, policy)) as runs:
            handle = await runs.start("packer", "go")
            error = await failure_of(handle)
            assert (error.type, error.message) == ("ToolTimeout", "tool 'pack' did not end within 1 s")


async def before_the_child(handle: Handle) -> int:
    """The end of the workflow task that began the child."""
    events = (await handle.fetch_history()).events
    begun = next(e for e in events if e.HasField("start_child_workflow_execution_initiated_event_attributes"))
    return begun.start_child_workflow_execution_initiated_event_attributes.workflow_task_completed_event_id


async def test_an_unsafe_child_is_begun_once_also_after_a_reset(client: Client, cache: int) -> None:
    script = Script({"pack": {"sku": "A-1"}}, "done")
    async with remote(client, workflows=[PackOrder]) as queue:
        async with working(client, packing(queue, script), cache=cache) as runs:
            first = await runs.start("packer", "go")
            await first.result()
            child = await child_of(client, first)
            only = (await child.describe()).run_id
            again = await reset(client, first, await before_the_child(first))
            assert (await again.result())["output"] == "done"
            ((outcome, text),) = (await answers(again)).values()
            assert (outcome, text[:43]) == ("interrupted", "The call was made before the run was reset.")
            assert (await child.describe()).run_id == only
            await check_run(again)


async def test_a_child_that_may_run_again_does_after_a_reset(client: Client) -> None:
    script = Script({"pack": {"sku": "A-1", "wait": True}}, "done")
    async with remote(client, workflows=[PackOrder]) as queue:
        async with working(client, packing(queue, script, ToolPolicy(effect="idempotent"))) as runs:
            first = await runs.start("packer", "go")
            child = await child_of(client, first)
            old = (await child.describe()).run_id
            again = await reset(client, first, await before_the_child(first))

            async def another() -> bool:
                return (await child.describe()).run_id != old

            await until(another)
            ended = await client.get_workflow_handle(child.id, run_id=old).describe()
            assert ended.status == WorkflowExecutionStatus.TERMINATED
            await child.signal("pack")
            assert (await again.result())["output"] == "done"
            ((outcome, _),) = (await answers(again)).values()
            assert outcome == "success"


async def test_a_run_that_is_ended_by_others_leaves_no_child_behind(client: Client) -> None:
    script = Script({"pack": {"sku": "A-1", "wait": True, "cleanup": True}})
    async with remote(client, workflows=[PackOrder]) as queue:
        async with working(client, packing(queue, script), check=False) as runs:
            handle = await runs.start("packer", "go")
            child = await child_of(client, handle)
            await handle.terminate()

            async def over() -> bool:
                return (await child.describe()).status == WorkflowExecutionStatus.CANCELED

            await until(over)
            assert await child.query("cleaned")
