"""Calls that are handed over to be run elsewhere: by whom, when, and what comes too late."""

from __future__ import annotations

from datetime import timedelta

from pydantic_ai import Agent, CallDeferred
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment

from perdure import App, Approval, ExternalCall
from tests.deciding import Row, answers, pending, refused, update
from tests.harness import failure_of, until, working
from tests.outside import office
from tests.scripts import Script
from tests.skipping import DAY, YEARS, skip


async def test_a_dispatcher_hands_the_call_over_once_with_one_key(client: Client, cache: int) -> None:
    given: list[ExternalCall] = []

    async def dispatch(call: ExternalCall) -> None:
        given.append(call)
        if len(given) == 1:
            raise ConnectionError("not now")

    app = office(Script({"print": {"pages": 3}}, "done"), dispatch=dispatch, wait=timedelta(hours=1))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("office", "go", metadata={"floor": 2})
        (row,) = await pending(handle, 1)
        await until(lambda: len(given) == 2)
        (row,) = await pending(handle, 1)
        await update(handle, "complete", {"call": given[1].call, "result": {"job": "7"}})
        await handle.result()
    first, second = given
    assert first == second
    assert (second.call, second.workflow_id, second.kind) == (row["call"], handle.id, "external")
    assert second.args == {"pages": 3}
    assert (second.run_metadata, second.expires_at) == ({"floor": 2}, row["expires_at"])
    assert len(second.idempotency_key) == 32


async def test_a_call_that_cannot_be_handed_over_fails(client: Client) -> None:
    async def dispatch(call: ExternalCall) -> None:
        raise ApplicationError("no such printer", type="NoPrinter", non_retryable=True)

    async with working(client, office(Script({"print": {"pages": 3}}, "done"), dispatch=dispatch)) as runs:
        handle = await runs.start("office", "go")
        result = await handle.result()
        outcome, text = (await answers(handle))["c0.0"]
        assert (outcome, "could not be handed over" in text) == ("failed", True)
    assert [row["event"] for row in result["audit"]] == ["asked", "not dispatched"]
    assert result["audit"][1]["reason"] == "NoPrinter: no such printer"


async def test_a_result_that_comes_too_late_is_refused_and_kept(clock: WorkflowEnvironment) -> None:
    script = Script({"print": {"pages": 3}}, {"print": {"pages": 4}}, "done")
    async with working(clock.client, office(script, wait=DAY)) as runs:
        handle = await runs.start("office", "go", timeout=YEARS)
        (row,) = await pending(handle, 1)
        await skip(clock, handle, 1.1 * DAY)
        later: Row = {}

        async def asks_again() -> bool:
            rows = [one for one in await handle.query("pending") if one["call"] != row["call"]]
            later.update(rows[0] if rows else {})
            return bool(later)

        await until(asks_again)
        text = await refused(handle, "complete", {"call": row["call"], "result": {"job": "7"}})
        assert text == f"AlreadyDecided: call {row['call']!r} is already decided: expired"
        await update(handle, "complete", {"call": later["call"], "result": {"job": "8"}})
        result = await handle.result()
        assert "No result came in time" in (await answers(handle))["c0.0"][1]
    assert [row["event"] for row in result["audit"]] == ["asked", "expired", "asked", "refused", "completed"]


async def test_an_expiry_outside_may_end_the_run(client: Client) -> None:
    app = office(Script({"print": {"pages": 3}}), wait=0.3, on_timeout="fail")
    async with working(client, app) as runs:
        handle = await runs.start("office", "go")
        assert (await failure_of(handle)).type == "ToolTimeout"


async def test_an_external_tool_that_is_gated_is_handed_over_when_it_is_approved(client: Client, cache: int) -> None:
    given: list[ExternalCall] = []

    async def dispatch(call: ExternalCall) -> None:
        given.append(call)

    app = office(Script({"print": {"pages": 3}}, "done"), dispatch=dispatch, approval=Approval(approvers=["boss"]))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("office", "go")
        (row,) = await pending(handle, 1)
        assert (row["kind"], row["approvers"]) == ("approval", ["boss"])
        assert "use approve or deny" in await refused(handle, "complete", {"call": row["call"], "result": {"job": "7"}})
        assert not given
        await update(handle, "approve", {"call": row["call"], "by": "boss"})

        async def handed() -> bool:
            return (await handle.query("audit"))[-1]["event"] == "dispatched"

        await until(handed)
        assert len(given) == 1
        (row,) = await pending(handle, 1)
        assert row["kind"] == "external"
        await update(handle, "complete", {"call": row["call"], "result": {"job": "7"}})
        result = await handle.result()
    assert [one["event"] for one in result["audit"]] == ["asked", "approved", "asked", "dispatched", "completed"]


async def test_a_result_from_outside(client: Client, cache: int) -> None:
    definition = ToolDefinition(name="outside", parameters_json_schema={"type": "object", "properties": {}})
    script = Script({"outside": {}}, "done")
    agent = Agent(script.model, name="out", toolsets=[ExternalToolset([definition], id="out")])
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        handle = await runs.start("out", "go")
        (row,) = await pending(handle, 1)
        assert row["kind"] == "external"
        assert "use complete" in await refused(handle, "approve", {"call": row["call"]})
        assert "one of them" in await refused(handle, "complete", {"call": row["call"], "result": 1, "error": "x"})
        await update(handle, "complete", {"call": row["call"], "result": {"a": [1, 2]}})
        assert (await handle.result())["output"] == "done"
        assert await answers(handle) == {"c0.0": ("success", '{"a":[1,2]}')}


async def test_a_tool_that_defers_itself_waits_for_its_result(client: Client) -> None:
    def later() -> str:
        """Started here, done elsewhere."""
        raise CallDeferred(metadata={"job": 7})

    script = Script({"later": {}}, "done")
    async with working(client, App(agents=[Agent(script.model, name="later", tools=[later])])) as runs:
        handle = await runs.start("later", "go")
        (row,) = await pending(handle, 1)
        assert (row["kind"], row["metadata"]) == ("external", {"job": 7})
        await update(handle, "complete", {"call": row["call"], "error": "the job failed"})
        await handle.result()
        assert await answers(handle) == {"c0.0": ("failed", "the job failed")}
