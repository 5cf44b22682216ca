"""Workers that are killed while people decide: the cases A1 to C1, at each moment at which a worker can die.

A worker process takes seconds to start, so each test starts runs of every case, kills the workers twice, and then
checks every run: `tests.approval_runs.Run.check` holds what must be true of each. The same cases with an ordinary
worker and with one that keeps nothing in memory are in `tests.test_approvals` and `tests.test_cases_approvals`.
"""

from __future__ import annotations

import asyncio
import signal
import uuid
from asyncio.subprocess import Process
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from perdure.client import PerdureClient, RunClosed
from tests.approval_cases import CASES, Call, Verb
from tests.approval_crash_app import AGENT
from tests.approval_runs import Run, begun, check_all, named
from tests.harness import check_run, until
from tests.sites import Site, stopped

REFUND: Call = ("refund", 1)
UPDATED = ("a1", "a2", "b1", "c1_both", "quorum")
"""Cases that are decided by update while no worker is up; the others by signal."""
APPROVED = [name for name, case in CASES.items() if case.approved]


@pytest.fixture
def site(client: Client, tmp_path: Path) -> Site:
    return Site(client, tmp_path, f"crash-{uuid.uuid4().hex[:12]}", "tests.approval_crash_app", AGENT)


async def still_wait(runs: list[Run]) -> None:
    """Every run shows what it showed before: the same keys, arguments and times, and the votes that were given."""
    for run, rows in zip(runs, await asyncio.gather(*(run.waiting() for run in runs)), strict=True):
        async with named(run):
            assert rows == run.shown
            assert (await run.handle.query("status"))["state"] == "waiting"


async def test_what_waits_outlives_its_workers_and_decisions_wait_for_one(site: Site) -> None:
    """The first worker dies while everything waits; the second when half is decided; the rest without one."""
    async with site.worker() as first:
        once, twice = await begun(site, CASES), await begun(site, CASES)
        burst, denied, torn, answered = special = await begun(site, ["b3"] * 4)
        await half_a_quorum([*once, *twice])
        await stopped(first, signal.SIGKILL)
    before = len(site.rows("ran"))
    async with site.worker() as second:
        await still_wait([*once, *twice, *special])
        assert len(site.rows("ran")) == before
        for run in once:
            await run.decide("update")
        await half_of_two_calls(twice)
        await check_all(once)
        await stopped(second, signal.SIGKILL)
    before = len(site.rows("ran"))
    sent = [asyncio.create_task(run.decide("update", *left(run))) for run in twice if run.name in UPDATED]
    for run in twice:
        if run.name not in UPDATED:
            await run.decide("signal", *left(run))
    for run, verbs in ((burst, ["approve", "approve", "approve", "deny"]), (denied, ["deny", "approve", "approve"])):
        for verb in verbs:
            await run.handle.signal(verb, run.body(REFUND))
    await answered.send("signal", "approve", answered.body(REFUND))
    late = asyncio.create_task(answered.send("update", "deny", answered.body(REFUND, "bob")))
    told = asyncio.create_task(contradiction(torn))
    await asyncio.gather(*(until_offered(run) for run in [*twice, *special]))
    assert not any(task.done() for task in (late, told, *sent)), "an update waits for a worker"
    assert len(site.rows("ran")) == before
    async with site.worker():
        await asyncio.gather(*sent)
        await check_all([*twice, burst, answered])
        assert await rejected(burst) == ["approve", "approve", "deny"]
        assert await rejected(denied) == ["approve", "approve"]
        assert await rejected(answered) == []
        with pytest.raises(WorkflowUpdateFailedError) as refusal:
            await late
        assert refused_as(refusal.value) == "AlreadyDecided"
        assert await told == ["AlreadyDecided", "AlreadyDecided"]
        assert await only_decision(denied) == "denied"
        await only_decision(torn)
        with pytest.raises(RunClosed):
            await PerdureClient(site.client).run(burst.handle.id).deny(burst.body(REFUND)["call"])
    assert len({row["pid"] for row in site.rows("asked")}) == 3


async def half_a_quorum(runs: list[Run]) -> None:
    """One of two people approves."""
    for run in runs:
        if run.name == "quorum":
            answer = await run.send("update", "approve", run.body(("transfer", 1), "ann"))
            assert (answer["outcome"], answer["needed"]) == ("voted", 1)
            run.shown = await run.waiting()


async def half_of_two_calls(runs: list[Run]) -> None:
    """Decide the second of two calls, and let it run to its end."""
    (run,) = [run for run in runs if run.name == "a2"]
    await run.decide("update", ("refund", 2))

    async def recorded() -> bool:
        return [row["event"] for row in await run.handle.query("audit")].count("ran") == 1

    await until(recorded)
    assert run.ran() == {("refund", 2): [1]}


def left(run: Run) -> list[Call]:
    """What is to be decided yet; of all where it is empty."""
    return [REFUND] if run.name == "a2" else []


async def contradiction(run: Run) -> list[str]:
    """Three people at once, of whom one is first: what the others are told."""
    votes: list[tuple[Verb, str]] = [("approve", "ann"), ("deny", "bob"), ("approve", "eve")]
    sent = [run.send("update", verb, run.body(REFUND, by)) for verb, by in votes]
    answers = await asyncio.gather(*sent, return_exceptions=True)
    return [refused_as(answer) for answer in answers if isinstance(answer, BaseException)]


def refused_as(error: BaseException) -> str:
    """The type of a refusal."""
    assert isinstance(error, WorkflowUpdateFailedError), error
    assert isinstance(error.cause, ApplicationError)
    return error.cause.type or ""


async def until_offered(run: Run) -> None:
    """Until the server has what was sent to the run, and offers it to whatever worker comes."""

    async def offered() -> bool:
        return (await run.handle.describe()).raw_description.HasField("pending_workflow_task")

    await until(offered)


async def rejected(run: Run) -> list[str]:
    """The signals that could not be used."""
    return [row["signal"] for row in (await run.handle.query("status"))["rejected"]]


async def only_decision(run: Run) -> str:
    """The one decision in the audit, which is what happened."""
    result = await run.handle.result()
    _, decided, *ran = [row["event"] for row in result["audit"] if row["event"] != "refused"]
    assert (decided, ran) in [("approved", ["ran"]), ("denied", [])]
    assert run.ran() == ({REFUND: [1]} if ran else {})
    assert len(run.rows("asked")) == 2
    await check_run(run.handle)
    return decided


async def test_an_approved_tool_that_loses_its_worker(site: Site) -> None:
    """Killed while it runs, before and after its effect; and right after its effect, by itself."""
    async with site.worker() as first:
        held = await begun(site, APPROVED, "holds")
        early = await begun(site, ["b3", "b2_retried"], "begins")
        dies, dies_retried = await begun(site, ["b3", "b2_retried"], "dies")
        for run in (*held, *early):
            await run.decide("update")
        await until(lambda: all(set(run.case.approved) <= set(run.ran()) for run in held))
        await until(lambda: all(run.rows("begun") for run in early))
        assert not any(run.ran() for run in early)
        await dies.decide("update")
        await killed(first)
    async with site.worker() as second:
        await check_all([*held, *early, dies])
        await still_wait([dies_retried])
        await dies_retried.decide("update")
        await killed(second)
    async with site.worker():
        await check_all([dies_retried])
    assert len({row["pid"] for row in dies_retried.rows("ran")}) == 2


async def killed(process: Process) -> None:
    """Wait until a worker has died of SIGKILL."""
    assert await asyncio.wait_for(process.wait(), 20) == -signal.SIGKILL
