"""The client, against a real server."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from perdure import App, DurableAgent, ToolPolicy, progress
from perdure.client import (
    ClientError,
    NoServer,
    NoSuchRun,
    PerdureClient,
    RunExists,
    RunFailed,
    connect,
)
from perdure.client.filters import quoted
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
        assert run.id in [found.id for found in await perdure.list("AgentName = 'teller'", status="completed")]


async def test_list_goes_on_after_the_first_page_of_the_server(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.client.connection.PAGE_SIZE", 2)
    perdure, queue = PerdureClient(client), f"nobody-{uuid.uuid4().hex[:8]}"
    ids = [(await perdure.start("teller", "Hi", task_queue=queue)).id for _ in range(5)]

    async def listed() -> bool:
        return len(await perdure.list(f"TaskQueue = '{queue}'")) == 5

    await until(listed)
    assert {run.id for run in await perdure.list(f"TaskQueue = '{queue}'")} == set(ids)
    found = await perdure.list(f"TaskQueue = '{queue}'", limit=3)
    assert (len(found), {run.agent for run in found}) == (3, {""})
    for id in ids:
        await client.get_workflow_handle(id).terminate()


@pytest.mark.parametrize("name", ["o'neil", "x' OR '1'='1", "ünï 100% _"])
async def test_list_finds_agents_of_any_name(client: Client, name: str) -> None:
    perdure = PerdureClient(client)
    async with working(client, App(agents=[Agent(Script("Hello.").model, name=name)])) as runs:
        run = await perdure.start(name, "Hi", id=f"named-{uuid.uuid4().hex[:8]}", task_queue=runs.task_queue)
        await run.result()

        async def listed() -> bool:
            return [found.id for found in await perdure.list(agent=name)] == [run.id]

        await until(listed)
    assert await perdure.list(agent=f"no {name}") == []


@pytest.mark.parametrize(
    ("text", "literal"), [("", "''"), ("o'neil", "'o''neil'"), ("a\\' b", "'a\\\\'' b'"), ('"x"', "'\"x\"'")]
)
async def test_strings_of_a_list_filter_are_quoted(client: Client, text: str, literal: str) -> None:
    assert quoted(text) == literal
    assert await PerdureClient(client).list(f"WorkflowId = {literal}") == []  # the server can read it


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
