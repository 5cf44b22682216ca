"""Tool results that are kept outside the run, for the model to read in parts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo
from temporalio.api.common.v1 import Payload
from temporalio.client import Client

from perdure import App, DeclarationError, DurableAgent, ToolPolicy
from perdure.cli.declared import describe_agent
from perdure.converter import data_converter
from perdure.payloads.files import FileStore
from perdure.toolsets.read_result import read_result
from tests.codecs import Reversed
from tests.harness import with_store, working
from tests.large_results import LIMIT, answer, fetching, policy, returned
from tests.payloads import files
from tests.scripts import Script, Turn

REF = re.compile(r"It is kept as ([0-9a-f]{32}); it begins:\n")


async def test_just_over_the_limit_store_keeps_it_for_the_model_to_read(
    stored: Client, folder: Path, cache: int
) -> None:
    text = "".join(f"line {number:05} é\n" for number in range(20_000))

    def read(start: int, length: int = 50_000) -> Turn:
        def turn(messages: list[ModelMessage], info: AgentInfo) -> Any:
            (ref,) = REF.findall(str(returned(messages[:3]).content))
            return {"read_result": {"ref": ref, "start": start, "length": length}}

        return turn

    turns = [read(start) for start in range(0, len(text), 50_000)]
    script, ran, app = fetching(text, policy("store"), *turns, read(len(text) + 5), read(7, 3))
    async with working(stored, app, cache=cache) as runs:
        handle = await runs.start("fetches", "go")
        assert (await handle.result())["output"] == "done"
        history = await handle.fetch_history()
    answers = [part for message in script.requests[-1] for part in message.parts if isinstance(part, ToolReturnPart)]
    told = str(answers[0].content)
    first = told.split("begins:\n")[1].split("\n[… read on")[0]
    assert len(told.encode()) <= LIMIT
    assert text.startswith(first)
    assert told.endswith(f"start={len(first)}) …]")
    assert f"{len(text.encode())} bytes in {len(text)} characters" in told
    pages = [str(part.content).partition("\n")[2] for part in answers[1:]]
    assert "".join(pages[:-2]) == text
    assert pages[-2:] == ["", text[7:10]]
    assert ran == ["fetch"]
    large = [path for path in files(folder) if path.stat().st_size > 200_000]  # beside it only pages of the transcript
    assert [path.parent.parent.name for path in large if b"total" not in path.read_bytes()[-200:]] == ["results"]
    scheduled = [
        e.activity_task_scheduled_event_attributes
        for e in history.events
        if e.HasField("activity_task_scheduled_event_attributes")
    ]
    retries = {one.activity_type.name: one.retry_policy.maximum_attempts for one in scheduled}
    assert (retries["tool:fetch"], retries["tool:read_result"]) == (1, 5)


async def test_a_reference_is_of_no_use_in_another_run(stored: Client) -> None:
    text = "secret " * 1000
    script, _, app = fetching(text, policy("store"))
    async with working(stored, app) as runs:
        await runs.run("fetches", "go")
    (ref,) = REF.findall(str(returned(script.requests[1]).content))
    tried = [ref, f"../{ref}", "../../payloads", "", "x" * 5000, ref.upper(), f"{ref}\n", "payloads/00/00"]
    calls: list[Any] = [ToolCallPart("read_result", {"ref": one}) for one in tried]
    other, _, app = fetching("small", policy("store"), calls)
    async with working(stored, app) as runs:
        assert (await runs.run("fetches", "go"))["output"] == "done"
    answers = [part for message in other.requests[-1] for part in message.parts if isinstance(part, ToolReturnPart)]
    for part in answers[1:]:
        assert part.outcome == "failed"
        assert str(part.content).startswith("There is no kept result ")
        assert len(str(part.content)) < 400
    assert len(answers) == 1 + len(tried)


async def test_the_reader_may_have_another_name_and_every_policy(stored: Client) -> None:
    """A pattern for all tools isn't for its pages: a page that is kept would be read page by page for ever."""

    def turn(messages: list[ModelMessage], info: AgentInfo) -> Any:
        (ref,) = REF.findall(str(returned(messages).content))
        return {"kept_read_result": {"ref": ref, "length": 40_000}}

    text = "0123456789" * 5000
    script, ran, app = fetching(text, None, turn, reads=read_result.prefixed("kept"))
    durable = DurableAgent(app.agents["fetches"].agent, policies={"*": policy("store")})
    assert durable.policies
    with pytest.raises(DeclarationError):
        App(agents=[DurableAgent(Agent(script.model, name="fetches"), policies={"*": policy("store")})])
    async with working(stored, App(agents=[durable])) as runs:
        assert (await runs.run("fetches", "go"))["output"] == "done"
    assert "read on with kept_read_result(ref=" in str(returned(script.requests[1]).content)
    page = str(returned(script.requests[2]).content)
    assert page == f"[characters 0 to 40000 of 50000; read on with start=40000]\n{text[:40_000]}"
    assert ran == ["fetch"]


async def test_a_result_that_cant_be_kept_is_told_and_not_fetched_again(stored: Client, folder: Path) -> None:
    """Where the results would lie is a file."""
    await FileStore(folder).put("results/00", b"")
    (folder / "results" / "00").rename(folder / "in the way")
    (folder / "results").rmdir()
    (folder / "in the way").rename(folder / "results")
    part = await answer(stored, "x" * (LIMIT + 1), policy("store"))
    assert (part.outcome, part.content) == (
        "failed",
        "The tool ran, but its result of 3001 bytes could not be kept. Ask for less.",
    )


async def test_a_kept_result_is_encoded_as_payloads_are(stored: Client, folder: Path) -> None:
    def turn(messages: list[ModelMessage], info: AgentInfo) -> Any:
        (ref,) = REF.findall(str(returned(messages).content))
        return {"read_result": {"ref": ref}}

    text = "confidential " * 500
    encoded = with_store(stored, replace(data_converter(), payload_codec=Reversed()))
    script, _, app = fetching(text, policy("store"), turn)
    async with working(encoded, app, check=False) as runs:
        assert (await runs.run("fetches", "go"))["output"] == "done"
    assert str(returned(script.requests[2]).content).endswith(f"\n{text}")
    (path,) = files(folder)
    assert b"confidential" not in path.read_bytes()
    assert b"laitnedifnoc" in path.read_bytes()


@pytest.mark.parametrize(
    "damaged", [b"something else", b"", Payload(data=b"x").SerializeToString()], ids=["", "empty", "other"]
)
async def test_a_damaged_kept_result_is_never_read(stored: Client, folder: Path, damaged: bytes) -> None:
    def turn(messages: list[ModelMessage], info: AgentInfo) -> Any:
        (ref,) = REF.findall(str(returned(messages).content))
        (path,) = [path for path in files(folder) if path.name == ref]
        path.write_bytes(damaged)
        return {"read_result": {"ref": ref}}

    script, _, app = fetching("x" * (LIMIT + 1), policy("store"), turn)
    app.agents["fetches"] = DurableAgent(
        app.agents["fetches"].agent,
        policies={"fetch": policy("store"), "read_result": ToolPolicy(effect="safe", attempts=1)},
    )
    async with working(stored, app) as runs:
        assert (await runs.run("fetches", "go"))["output"] == "done"
    part = returned(script.requests[2])
    assert (part.outcome, part.content) == ("failed", "The tool failed with PayloadStoreError.")


async def test_without_a_store_a_run_that_needs_one_is_refused(client: Client) -> None:
    for needing in (policy("store"), policy("truncate", 1_500_001)):
        script, ran, app = fetching("x", needing)
        async with working(client, app) as runs:
            failure = await runs.failure("fetches", "go")
        assert (failure.type, failure.message) == (
            "InvalidRequest",
            "the policies ['fetch'] keep or carry large results, and this worker has no payload store: start it with "
            "PERDURE_PAYLOADS",
        )
        assert (script.requests, ran) == ([], [])


def test_the_reader_is_declared_as_it_runs() -> None:
    _, _, app = fetching("x", policy("store"))
    tools = {tool["name"]: tool["effect"] for tool in describe_agent(app.agents["fetches"])["tools"]}
    assert tools == {"fetch": "unsafe", "read_result": "safe"}


def test_results_that_nobody_could_read_are_refused() -> None:
    script = Script("done")

    def fetch() -> str:
        """Fetch."""
        return ""

    agent = Agent(script.model, name="fetches", tools=[fetch])
    with pytest.raises(DeclarationError) as raised:
        App(agents=[DurableAgent(agent, policies={"fetch": policy("store")})])
    assert str(raised.value) == (
        "agent 'fetches': policies ['fetch'] keep large results, which the model reads with a tool that the agent "
        "hasn't: Agent(…, toolsets=[read_result]), from perdure.toolsets.read_result"
    )
