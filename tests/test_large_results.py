"""Tool results over the limit of their policy: told, cut or kept outside; whatever it is, the tool runs once."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic_ai import Agent, BinaryContent, FunctionToolset, ToolReturn
from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo
from temporalio.api.common.v1 import Payload
from temporalio.client import Client

from perdure import App, DeclarationError, DurableAgent, ToolPolicy
from perdure.activities.large_result import head_and_tail
from perdure.cli.declared import describe_agent
from perdure.contracts import MAX_STORED, MIN_RESULT
from perdure.converter import data_converter
from perdure.payloads.files import FileStore
from perdure.toolsets.read_result import read_result
from tests.codecs import Reversed
from tests.harness import activities, attempts, with_store, working
from tests.payloads import MB, files
from tests.scripts import Script, Turn

LIMIT = 3_000
IMAGE = BinaryContent(b"\x89PNG" + bytes(MB - 4), media_type="image/png")
"""A megabyte, and a third more as JSON."""
Rule = Literal["fail", "truncate", "store"]


def fetching(result: Any, policy: ToolPolicy | None, *turns: Turn, reads: Any = None) -> tuple[Script, list[str], App]:
    """An agent whose one tool returns `result`, with what ran."""
    ran: list[str] = []
    tools = FunctionToolset[object](id="fetching")

    @tools.tool_plain
    def fetch() -> Any:
        """Fetch."""
        ran.append("fetch")
        return result

    script = Script({"fetch": {}}, *turns, "done")
    agent = Agent(script.model, name="fetches", toolsets=[tools, reads or read_result])
    policies = {} if policy is None else {"fetch": policy}
    return script, ran, App(agents=[DurableAgent(agent, policies=policies, model_attempts=1)])


async def answer(client: Client, result: Any, policy: ToolPolicy | None, cache: int = 1000) -> ToolReturnPart:
    """What the model is answered; the tool has run once, in one attempt."""
    script, ran, app = fetching(result, policy)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("fetches", "go")
        assert (await handle.result())["output"] == "done"
        assert await activities(handle) == ["model_request", "tool:fetch", "model_request"]
        assert await attempts(handle) == [1, 1, 1]
    assert ran == ["fetch"]
    return returned(script.requests[1])


def returned(messages: list[ModelMessage]) -> ToolReturnPart:
    """The latest answer to a call."""
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)][-1]


def policy(rule: Rule, most: int | None = LIMIT) -> ToolPolicy:
    return ToolPolicy(max_result_bytes=most, on_large_result=rule)


@pytest.mark.parametrize("rule", ["fail", "truncate", "store"])
async def test_a_result_just_under_the_limit_is_as_it_was(stored: Client, folder: Path, rule: Rule) -> None:
    text = "é" * (LIMIT // 2)
    part = await answer(stored, text, policy(rule))
    assert (part.outcome, part.content) == ("success", text)
    assert files(folder) == []


async def test_just_over_the_limit_fail_tells_the_sizes(client: Client, cache: int) -> None:
    part = await answer(client, "é" * (LIMIT // 2) + "x", policy("fail"), cache)
    assert (part.outcome, part.content) == (
        "failed",
        "The tool ran, but its result has 3001 bytes; a result may have 3000. Ask for less.",
    )


@pytest.mark.parametrize("text", ["x" * (LIMIT + 1), "é" * 50_000, "𝄞" * 50_000, "aé𝄞" * 20_000], ids=len)
async def test_just_over_the_limit_truncate_leaves_head_and_tail(client: Client, text: str) -> None:
    part = await answer(client, text, policy("truncate"))
    cut = str(part.content)
    assert part.outcome == "success"
    assert LIMIT - 10 <= len(cut.encode()) <= LIMIT
    head, missing, size, tail = re.split(r"\n\[… (\d+) of (\d+) bytes are left out here …\]\n", cut)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert abs(len(head.encode()) - len(tail.encode())) < 10
    assert int(size) == len(text.encode()) == len(head.encode()) + int(missing) + len(tail.encode())


async def test_truncate_cuts_the_json_that_the_model_would_read(client: Client) -> None:
    rows = [{"id": number, "name": "é"} for number in range(1000)]
    whole = json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
    part = await answer(client, rows, policy("truncate"))
    cut = str(part.content)
    assert cut.startswith(whole[:1000])
    assert cut.endswith(whole[-1000:])
    assert f"of {len(whole.encode())} bytes are left out" in cut
    assert len(cut.encode()) <= LIMIT


async def test_truncate_leaves_a_structured_result_under_the_limit_structured(client: Client) -> None:
    part = await answer(client, [{"id": 1}], policy("truncate"))
    assert part.content == [{"id": 1}]


@pytest.mark.parametrize("text", ['"\\\n' * 700_000, "x" * 3 * MB], ids=["quotes", "plain"])
async def test_truncate_without_a_limit_of_its_own_leaves_what_can_be_carried(client: Client, text: str) -> None:
    """As JSON the first is twice as large as the model reads it."""
    cut = str((await answer(client, text, policy("truncate", None))).content)
    assert text.startswith(cut[:1000])
    assert 500_000 < len(json.dumps(cut, ensure_ascii=False).encode()) < 1_500_000


def test_head_and_tail_fit_whatever_the_limit() -> None:
    text = "aé𝄞" * 1000
    for most in range(MIN_RESULT, MIN_RESULT + 50):
        assert most - 10 <= len(head_and_tail(text, most).encode()) <= most


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


@pytest.mark.parametrize("over", [False, True], ids=["just under", "just over"])
async def test_with_a_store_a_result_may_have_what_its_policy_says(stored: Client, cache: int, over: bool) -> None:
    most = 6 * MB
    part = await answer(stored, "x" * (most + over), policy("fail", most), cache)
    if over:
        assert (
            part.content
            == f"The tool ran, but its result has {most + 1} bytes; a result may have {most}. Ask for less."
        )
    else:
        assert part.content == "x" * most


async def test_without_a_limit_of_its_own_a_result_has_one_with_a_store_too(stored: Client, cache: int) -> None:
    part = await answer(stored, "x" * 1_500_000, None, cache)
    assert re.search(r"its result has 15001\d\d bytes; a result may have 1500000\.", str(part.content))
    assert (await answer(stored, "x" * 1_499_500, None, cache)).outcome == "success"


async def test_an_image_of_a_megabyte_is_carried(client: Client, cache: int) -> None:
    part = await answer(client, IMAGE, None, cache)
    assert part.outcome == "success"
    assert [getattr(file, "data", None) for file in part.files] == [IMAGE.data]


@pytest.mark.parametrize("rule", ["fail", "truncate", "store"])
async def test_images_are_never_cut_or_kept(stored: Client, rule: Rule) -> None:
    for result in ([IMAGE, IMAGE], ["text", IMAGE, IMAGE], ToolReturn(return_value="two", content=[IMAGE, IMAGE])):
        part = await answer(stored, result, policy(rule, None))
        assert part.outcome == "failed"
        assert re.fullmatch(
            r"The tool ran, but its result has 266\d\d\d\d bytes; a result may have 1500000\. "
            r"Files and images are never cut\. Ask for less\.",
            str(part.content),
        )


async def test_with_a_store_several_images_are_carried(stored: Client, cache: int) -> None:
    part = await answer(stored, [IMAGE] * 3, policy("fail", 5 * MB), cache)
    assert [getattr(file, "data", None) for file in part.files] == [IMAGE.data] * 3


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


@pytest.mark.parametrize("most", [0, MIN_RESULT - 1, MAX_STORED + 1])
def test_a_limit_out_of_bounds_is_refused(most: int) -> None:
    with pytest.raises(DeclarationError, match=f"max_result_bytes={most} must be from 1000 to 8000000"):
        ToolPolicy(max_result_bytes=most)
    ToolPolicy(max_result_bytes=MIN_RESULT)
    ToolPolicy(max_result_bytes=MAX_STORED)


def test_an_unknown_rule_is_refused() -> None:
    rule: Any = "drop"
    with pytest.raises(DeclarationError, match="on_large_result='drop' is none of"):
        ToolPolicy(on_large_result=rule)


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
