"""The client, against a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from perdure import App, DurableAgent, ToolPolicy, progress
from perdure.client import (
    ClientError,
    NoAnswer,
    NoServer,
    NoSuchRun,
    PerdureClient,
    RunExists,
    RunFailed,
    RunHandle,
    connect,
)
from perdure.contracts import Limits
from perdure.errors import InvalidRequest
from tests.command import free_port
from tests.harness import until, working
from tests.scripts import Script


def waiting_app(release: asyncio.Event) -> App:
    """An agent whose tool says something and waits."""
    tools = FunctionToolset[object](id="tools")

    @tools.tool_plain
    async def wait_for_it() -> str:
        """Wait."""
        progress("half done")
        await release.wait()
        return "released"

    agent = Agent(Script({"wait_for_it": {}}, "Done.").model, name="waiter", toolsets=[tools])
    return App(agents=[DurableAgent(agent, policies={"*": ToolPolicy(cancel_grace=0.1)})])


def text_app(*turns: Any) -> App:
    return App(agents=[Agent(Script(*turns).model, name="teller")])


async def test_run_gives_its_result_state_and_transcript(client: Client, cache: int) -> None:
    perdure = PerdureClient(client)
    async with working(client, text_app("Hello."), cache=cache) as runs:
        run = await perdure.start("teller", "Hi", task_queue=runs.task_queue, metadata={"ticket": 7})
        assert run.id.startswith("teller-")
        assert (await run.result()).output == "Hello."
        assert (await run.status()).state == "done"
        entries = await run.transcript()
        assert [entry["kind"] for entry in entries] == ["start", "user", "response"]
        assert entries[0]["metadata"] == {"ticket": 7}
        assert await run.transcript(start=2) == entries[2:]
        summary = await run.describe()
        assert (summary.id, summary.agent, summary.status) == (run.id, "teller", "completed")
        assert summary.closed is not None
        assert [found.id for found in await perdure.list('AgentName = "teller"') if found.id == run.id] == [run.id]


async def test_transcript_is_read_in_pages(client: Client) -> None:
    prompt, answer = "x" * 1_200_000, "y" * 400_000
    async with working(client, text_app(answer)) as runs:
        run = await PerdureClient(client).start("teller", prompt, task_queue=runs.task_queue)
        await run.result()
        entries = await run.transcript()
        assert [entry["kind"] for entry in entries] == ["start", "user", "response"]
        assert entries[2]["response"]["parts"][0]["content"] == answer


async def test_following_shows_each_entry_once_and_live_text_while_it_lasts(client: Client) -> None:
    release = asyncio.Event()
    async with working(client, waiting_app(release)) as runs:
        run = await PerdureClient(client).start("waiter", "Go", task_queue=runs.task_queue)
        kinds: list[str] = []
        said: set[tuple[str, int, str]] = set()
        async for look in run.follow(every=0.02):
            kinds += [entry["kind"] for entry in look.entries]
            said |= {(live.activity, live.attempt, live.text) for live in look.live}
            if ("tool:wait_for_it", 1, "half done") in said:
                release.set()
        assert kinds == ["start", "user", "response", "outcomes", "response"]
        assert await run.live() == []


async def test_cancelled_run_fails_typed(client: Client) -> None:
    async with working(client, waiting_app(asyncio.Event())) as runs:
        run = await PerdureClient(client).start("waiter", "Go", task_queue=runs.task_queue)

        async def waits() -> bool:
            return any(live.text == "half done" for live in await run.live())

        await until(waits)
        await run.cancel()
        with pytest.raises(RunFailed, match="Cancelled: the run was cancelled") as failed:
            await run.result()
        assert (failed.value.type, failed.value.run) == ("Cancelled", run.id)
        outcomes = (await run.transcript())[-1]["outcomes"]
        assert [outcome["tool"] for outcome in outcomes] == ["wait_for_it"]


async def test_failure_has_the_type_and_message_of_history(client: Client) -> None:
    async with working(client, text_app("Hello.")) as runs:
        run = await PerdureClient(client).start("nobody", "Hi", task_queue=runs.task_queue)
        with pytest.raises(RunFailed) as failed:
            await run.result()
        assert failed.value.type == "UnknownAgent"
        assert failed.value.message == "no agent is named 'nobody'. Known agents: ['teller']"


async def test_only_the_limits_that_are_given_are_sent(client: Client) -> None:
    agent = Agent(Script("Hello.").model, name="teller")
    app = App(agents=[DurableAgent(agent, limits=Limits(requests=2, tool_calls=3))])
    async with working(client, app) as runs:
        run = await PerdureClient(client).start("teller", "Hi", limits=Limits(requests=0), task_queue=runs.task_queue)
        with pytest.raises(RunFailed, match="LimitExceeded"):
            await run.result()


async def test_id_is_used_once_also_after_the_run_has_ended(client: Client) -> None:
    perdure = PerdureClient(client)
    async with working(client, text_app("Hello.")) as runs:
        run = await perdure.start("teller", "Hi", task_queue=runs.task_queue)
        await run.result()
        with pytest.raises(RunExists, match=run.id):
            await perdure.start("teller", "Hi", id=run.id, task_queue=runs.task_queue)


@pytest.mark.parametrize(
    "fields", [{"prompt": 7}, {"prompt": "x", "params": object()}, {"prompt": "x", "metadata": []}]
)
async def test_request_that_is_not_json_is_refused_before_it_is_sent(client: Client, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="the run can't be asked for"):
        await PerdureClient(client).start("teller", **fields)


async def test_run_that_is_not_there(client: Client) -> None:
    run = PerdureClient(client).run("nothing")
    for ask in (run.result, run.status, run.transcript, run.live, run.describe, run.cancel):
        with pytest.raises(NoSuchRun, match="there is no run 'nothing'"):
            await ask()


async def test_query_that_no_worker_answers_names_the_task_queue(client: Client) -> None:
    started = await PerdureClient(client).start("teller", "Hi", task_queue="nobody-polls-this")
    run = RunHandle(client, started.id, query_timeouts=(0.2, 0.4))
    with pytest.raises(NoAnswer, match="no worker of task queue 'nobody-polls-this' answered"):
        await run.status()
    await client.get_workflow_handle(run.id).terminate(reason="the test is over")
    with pytest.raises(RunFailed, match="Terminated: the test is over"):
        await run.result()


async def test_connection_is_configured_by_temporals_environment(
    environment: WorkflowEnvironment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address = environment.client.service_client.config.target_host
    file = tmp_path / "temporal.toml"
    file.write_text(f'[profile.staging]\naddress = "{address}"\nnamespace = "nowhere"\n')
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(file))
    with pytest.raises(ClientError, match="the server has no namespace 'nowhere'"):
        await connect(profile="staging")
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "default")
    assert (await connect(profile="staging")).address == address
    monkeypatch.setenv("TEMPORAL_PROFILE", "missing")
    with pytest.raises(ClientError, match="Temporal's client configuration can't be used: Profile 'missing' not found"):
        await connect()


async def test_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    with pytest.raises(NoServer, match=rf"no Temporal server answers at '{nowhere}' \(Connection refused\)"):
        await connect(address=nowhere)
