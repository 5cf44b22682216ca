"""Compaction on the real server: when it is due, and what the model is then sent."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.capabilities import Capability
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client

from perdure import App, Approval, DurableAgent, ToolPolicy
from perdure.activities.transcript import Conversation
from perdure.errors import DeclarationError
from tests.compacting import PER_MESSAGE, Summarizer, app, check_requests, counting, entries_of, summaries
from tests.deciding import pending
from tests.harness import activities, working
from tests.scripts import Script


async def test_older_messages_are_summarised_above_the_tokens(client: Client, cache: int) -> None:
    script, summarizer, ran = counting(8), Summarizer(), list[int]()
    async with working(client, app(script, summarizer, ran=ran), cache=cache) as runs:
        handle = await runs.start("shop", "Look at all.")
        result = await handle.result()
        entries = await entries_of(handle)
        steps = [name for name in await activities(handle) if name != "tool:look"]
    assert result["output"] == "done"
    assert ran == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [len(messages) for messages in script.requests] == [1, 3, 5, 3, 5, 3, 5, 3, 5]
    assert " ".join(steps).replace("model_request", "m") == "m m m compact m m compact m m compact m m"
    assert summaries(script.requests[3]) == ["Summary: saw-1 saw-2"]
    assert summaries(script.requests[-1]) == ["Summary: saw-1 saw-2 saw-3 saw-4 saw-5 saw-6"]
    first = script.requests[-1][0]
    assert [part.content for part in first.parts if isinstance(part, UserPromptPart)] == ["Look at all."]
    check_requests(script)
    assert summarizer.instructions[0].startswith("You keep the record")
    assert "saw-1" in summarizer.asked[0]
    # the transcript has everything, and the notes beside it
    assert [entry["kind"] for entry in entries].count("note") == 3
    assert [entry["kind"] for entry in entries].count("response") == 9
    answers = [row["parts"][0]["content"] for entry in entries for row in entry.get("outcomes", [])]
    assert answers == [f"saw-{n}" for n in range(1, 9)]
    usage = result["usage"]
    assert usage["requests"] == 9 + 3
    assert usage["input_tokens"] == PER_MESSAGE * sum(map(len, script.requests)) + 3 * 7


async def test_a_conversation_goes_on_from_what_a_note_leaves(client: Client) -> None:
    script = counting(8)
    async with working(client, app(script, Summarizer())) as runs:
        handle = await runs.start("shop", "Look at all.")
        await handle.result()
        entries = await entries_of(handle)
    whole = Conversation().extended(entries)
    uptos = [entry["upto"] for entry in entries if entry["kind"] == "note"]
    assert len(uptos) == 3
    for upto in uptos:
        mark = Conversation().extended(entries[:upto]).mark
        assert Conversation(mark=mark).extended(entries[upto:]) == whole


async def test_a_new_worker_goes_on_after_a_compaction(client: Client) -> None:
    script, summarizer = counting(6, lambda n: {"look" if n != 4 else "gated": {"n": n}}), Summarizer()
    tools = FunctionToolset[object](id="gated")

    @tools.tool_plain
    def gated(n: int) -> str:
        return f"saw-{n}"

    options: dict[str, Any] = {"toolsets": [tools], "policies": {"gated": ToolPolicy(approval=Approval())}}
    async with working(client, app(script, summarizer, **options), check=False) as runs:
        handle = await runs.start("shop", "Look at all.")
        (row,) = await pending(handle, 1)
    assert summaries(script.requests[-1]) == ["Summary: saw-1 saw-2"]
    async with working(client, app(script, summarizer, **options), task_queue=runs.task_queue) as again:
        again.handles.append(handle)
        await handle.execute_update("approve", {"call": row["call"], "by": "ann"})  # pyright: ignore[reportUnknownMemberType]
        assert (await handle.result())["output"] == "done"
    assert summaries(script.requests[4]) == ["Summary: saw-1 saw-2"]
    check_requests(script)


async def test_system_prompts_are_sent_also_after_a_compaction(client: Client) -> None:
    script = counting(6)
    async with working(client, app(script, Summarizer(), system_prompt=["Be brief.", "Be kind."])) as runs:
        await runs.run("shop", "Look at all.")
    for messages in script.requests:
        prompts = [part.content for part in messages[0].parts if isinstance(part, SystemPromptPart)]
        assert prompts == ["Be brief.", "Be kind."]


async def test_tools_that_were_found_stay_found(client: Client, cache: int) -> None:
    turns: dict[int, dict[str, Any]] = {1: {"search_tools": {"queries": ["add numbers"]}}}
    script = counting(6, lambda n: turns.get(n, {"add": {"a": n, "b": 1}}))
    tools = FunctionToolset[object](id="numbers")

    @tools.tool_plain
    def add(a: int, b: int) -> int:
        """Add numbers."""
        return a + b

    async with working(client, app(script, Summarizer(), toolsets=[tools.defer_loading(["add"])]), cache=cache) as runs:
        handle = await runs.start("shop", "Add.")
        assert (await handle.result())["output"] == "done"
        assert (await activities(handle)).count("tool:add") == 5
        assert (await activities(handle)).count("compact") == 2
    check_requests(script)
    assert all("add" in [tool.name for tool in info.function_tools] for info in script.infos[1:])


async def test_capabilities_that_were_loaded_stay_loaded(client: Client) -> None:
    turns: dict[int, dict[str, Any]] = {1: {"load_capability": {"id": "maths"}}}
    script = counting(6, lambda n: turns.get(n, {"square": {"n": n}}))
    tools = FunctionToolset[object](id="maths")

    @tools.tool_plain
    def square(n: int) -> int:
        """The square of a number."""
        return n * n

    maths = Capability[Any](
        id="maths", description="Squares.", instructions="Round up.", toolsets=[tools], defer_loading=True
    )
    async with working(client, app(script, Summarizer(), capabilities=[maths])) as runs:
        handle = await runs.start("shop", "Square.")
        assert (await handle.result())["output"] == "done"
        assert (await activities(handle)).count("tool:square") == 5
        assert (await activities(handle)).count("compact") == 2
    check_requests(script)
    assert all("Round up." in str(messages) for messages in script.requests[1:])


async def test_the_runs_own_model_summarises_where_no_other_is_named(client: Client) -> None:
    def turn(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if (info.instructions or "").startswith("You keep the record"):
            return ModelResponse(parts=[TextPart("by the same model")])
        return script(messages, info)

    script = counting(4)
    tools = FunctionToolset[object](id="shop")

    @tools.tool_plain
    def look(n: int) -> str:
        return f"saw-{n}"

    agent = Agent(FunctionModel(turn), name="shop", toolsets=[tools])
    async with working(client, App(agents=[DurableAgent(agent, compact_above=450, compact_keep=0)])) as runs:
        await runs.run("shop", "Look at all.")
    assert summaries(script.requests[-1]) == ["by the same model"]


async def test_a_long_conversation_is_summarised_in_parts(client: Client) -> None:
    script, summarizer = counting(3), Summarizer()
    model = FunctionModel(summarizer._answer, profile={"context_window": 1_000})  # pyright: ignore[reportPrivateUsage]
    prompt = "word " * 1_000 + "saw-0 "
    async with working(client, app(script, models={"short": model}, compact_with="short")) as runs:
        result = await runs.run("shop", prompt)
    assert len(summarizer.asked) == 3
    assert max(len(text) for text in summarizer.asked) < 2_000 + 1_000
    assert summaries(script.requests[-1]) == ["Summary: saw-0 saw-1 saw-2"]
    assert result["usage"]["requests"] == 4 + 3


async def test_the_window_of_the_model_is_a_bound_where_it_is_known(client: Client) -> None:
    script = counting(4)
    tools = FunctionToolset[object](id="shop")

    @tools.tool_plain
    def look(n: int) -> str:
        return f"saw-{n}"

    def model() -> FunctionModel:
        return FunctionModel(script._function, profile={"context_window": 560})  # pyright: ignore[reportPrivateUsage]

    rows: dict[str, dict[str, Any]] = {
        "window": {"compact_with": "short", "compact_keep": 0},
        "both": {"compact_with": "short", "compact_keep": 0, "compact_above": 1_000},
        "never": {"compact_above": 0},
    }
    agents = [
        DurableAgent(Agent(model(), name=name, toolsets=[tools]), models={"short": Summarizer().model}, **options)
        for name, options in rows.items()
    ]
    async with working(client, App(agents=agents)) as runs:
        for name, compactions in {"window": 1, "both": 1, "never": 0}.items():
            handle = await runs.start(name, "Look at all.")
            await handle.result()
            assert (await activities(handle)).count("compact") == compactions, name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compact_with": "none"}, "compact_with='none' is none of the agent's models. Known models: ['cheap']"),
        ({"compact_above": -1}, "compact_above=-1 must be a whole number, at least 0"),
        ({"compact_above": True}, "compact_above=True must be"),
        ({"compact_keep": 0.5}, "compact_keep=0.5 must be"),
    ],
)
def test_what_can_not_be_is_refused_when_declared(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        DurableAgent(Agent(Script("x").model, name="a"), models={"cheap": Script("x").model}, **options)
    assert message in str(raised.value)
