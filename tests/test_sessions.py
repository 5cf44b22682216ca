"""Sessions: turns, the queue, steering, interrupting, closing."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client

from perdure import App
from perdure.client import PerdureClient, RunClosed
from perdure.contracts import Output
from perdure.workflows.waiting import SUPERSEDED
from tests.deciding import answers, cancelled, pending, refused, update
from tests.gate import Gate, last_text
from tests.harness import until, working
from tests.scripts import Script, answer
from tests.sessions import SESSION, answered, closed, send, turn, user_texts
from tests.shop import shop


async def test_a_session_answers_one_message_after_the_other(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script("hello", {"look": {"n": 1}}, "seen", "bye")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "hi", **SESSION)
        assert (await handle.query("status"))["session"]
        assert await answered(handle, "look") == "seen"
        assert await answered(handle, "bye", id="m3") == "bye"
        result = await closed(handle)
        assert (result["output"], result["turns"], result["steps"]) == ("bye", 3, 4)
        assert ran == [("look", 1)]


async def test_one_call_starts_a_session_or_sends_to_it(client: Client) -> None:
    perdure = PerdureClient(client)
    async with working(client, shop(Script("hello", "again"), [])) as runs:
        id = f"chat-{uuid.uuid4().hex[:8]}"
        asked: dict[str, Any] = {"id": id, "task_queue": runs.task_queue}
        run, sent = await perdure.send("shop", "hi", message_id="a", **asked)
        assert sent.state in ("queued", "running")
        assert (await run.wait_turn(message="a")).output == Output(value="hello")
        _, repeated = await perdure.send("shop", "hi", message_id="a", **asked)
        assert (repeated.turn, repeated.state) == (1, "done")
        run, _ = await perdure.send("shop", "more", message_id="b", **asked)
        assert (await run.wait_turn(message="b")).turn == 2
        await run.close(by="ann")
        assert (await run.result()).output == "again"
        with pytest.raises(RunClosed):
            await perdure.send("shop", "late", **asked)
        with pytest.raises(RunClosed):
            await run.send("late")


async def test_interrupting_an_answer_keeps_its_text_and_marks_it(client: Client, cache: int) -> None:
    gate = Gate()
    async with working(client, gate.app(), cache=cache) as runs:
        handle = await runs.start("gate", "write", **SESSION)
        await until(lambda: len(gate.said) == 3)
        assert await update(handle, "interrupt", {"by": "ann", "reason": "too long"}) == {"state": "running"}
        ended = await turn(handle, turn=1)
        assert (ended["state"], ended["error"]["message"]) == (
            "interrupted",
            "the turn was interrupted by 'ann': too long",
        )
        assert ended["usage"]["details"] == {"interrupted_requests": 1}
        assert await answered(handle, "next") == "answered 2"
        first, partial, second = gate.requests[1]
        assert [part.part_kind for part in first.parts] == ["system-prompt", "user-prompt"]
        assert isinstance(partial, ModelResponse)
        assert (partial.text, partial.state) == ("one two three ", "interrupted")
        assert [part.part_kind for part in second.parts] == ["user-prompt"]
        await closed(handle)


async def test_interrupting_before_the_first_word_keeps_the_system_prompt(client: Client) -> None:
    script = Script("done")
    started = asyncio.Event()

    async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if not started.is_set():
            started.set()
            await asyncio.sleep(60)
        return script(messages, info)

    agent = Agent(FunctionModel(model), name="slow", system_prompt="You are slow.")
    async with working(client, App(agents=[agent])) as runs:
        handle = await runs.start("slow", "one", **SESSION)
        await started.wait()
        sent = await send(handle, "two", when_busy="interrupt")
        assert (await turn(handle, message=sent["messages"][0]))["output"]["value"] == "done"
        assert (await turn(handle, turn=1))["state"] == "interrupted"
        (request,) = script.requests[0]
        assert [getattr(part, "content", None) for part in request.parts] == ["You are slow.", ["one", "two"]]
        await closed(handle)


@pytest.mark.parametrize(("effect", "kind"), [("unsafe", "interrupted"), ("safe", "interrupted")])
async def test_interrupting_waits_for_tools_and_supersedes_what_waits(
    client: Client, cache: int, effect: str, kind: str
) -> None:
    gate = Gate()
    async with working(client, gate.app(effect=effect), cache=cache) as runs:
        handle = await runs.start("gate", "work", **SESSION)
        (row,) = await pending(handle, 1)
        await until(lambda: gate.ran == ["began 1"])
        sent = await send(handle, "something else", when_busy="interrupt", by="ann")
        assert (await turn(handle, message=sent["messages"][0]))["output"]["value"] == "answered 2"
        given = await answers(handle)
        assert given["w1"][0] == kind
        assert given["r2"] == ("denied", SUPERSEDED)
        assert gate.ran == ["began 1"]
        assert "already decided: superseded" in await refused(handle, "approve", {"call": row["call"], "by": "bob"})
        assert "another message by 'ann'" in (await turn(handle, turn=1))["error"]["message"]
        assert [one["event"] for one in await handle.query("audit")] == ["asked", "superseded", "refused"]
        await closed(handle)


async def test_case_c2_a_message_while_a_call_waits_is_queued_until_it_is_decided(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "refunded", "hello")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go", **SESSION)
        (row,) = await pending(handle, 1)
        sent = await send(handle, "are you there?")
        assert sent["state"] == "queued"
        assert (await handle.query("status"))["queue"] == 1
        assert [one["call"] for one in await pending(handle, 1)] == [row["call"]]
        assert ran == []
        await update(handle, "approve", {"call": row["call"], "by": "ann"})
        assert (await turn(handle, message=sent["messages"][0]))["output"]["value"] == "hello"
        assert ran == [("refund", 1)]
        await closed(handle)


async def test_case_c2_a_message_that_interrupts_denies_what_waits(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "hello")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go", **SESSION)
        await pending(handle, 1)
        assert await answered(handle, "never mind", when_busy="interrupt") == "hello"
        assert await pending(handle, 0) == []
        assert await answers(handle) == {"c0.0": ("denied", SUPERSEDED)}
        assert ran == []
        await closed(handle)


async def test_a_message_steers_the_running_turn_before_its_next_request(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1}}, "done", "again")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go", **SESSION)
        (row,) = await pending(handle, 1)
        sent = await send(handle, "and be polite", when_busy="steer", id="s")
        assert sent["state"] == "queued"
        await update(handle, "approve", {"call": row["call"], "by": "ann"})
        steered = await turn(handle, message="s")
        assert (steered["turn"], steered["messages"]) == (1, ["prompt", "s"])
        last = script.requests[-1][-1]
        assert [part.part_kind for part in last.parts] == ["tool-return", "user-prompt"]
        assert await answered(handle, "late", when_busy="steer") == "again"  # none runs: it gets its own turn
        await closed(handle)


async def test_a_run_that_is_no_session_answers_what_was_sent_before_it_ended(client: Client, cache: int) -> None:
    script = Script({"refund": {"n": 1}}, "first", "second")
    async with working(client, shop(script, []), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        await handle.signal("send", {"content": "and then"})
        assert "cancel it" in await refused(handle, "interrupt", {})
        assert "isn't a session" in await refused(handle, "close", {})
        await update(handle, "deny", {"call": row["call"], "by": "ann"})
        result = await handle.result()
        assert (result["output"], result["turns"]) == ("second", 2)


async def test_messages_are_neither_lost_nor_doubled(client: Client, cache: int) -> None:
    script = Script({"refund": {"n": 1}}, *(f"turn {n}" for n in range(1, 12)))
    async with working(client, shop(script, []), cache=cache) as runs:
        handle = await runs.start("shop", "go", **SESSION)
        (row,) = await pending(handle, 1)
        for n in range(10):
            await handle.signal("send", {"content": f"m{n}", "id": f"m{n}"})
            assert (await send(handle, "other", id=f"m{n}"))["messages"] == [f"m{n}"]
        await update(handle, "deny", {"call": row["call"], "by": "ann"})
        assert (await turn(handle, message="m9"))["turn"] == 11
        assert (await send(handle, "other", id="m3"))["state"] == "done"
        assert await user_texts(handle) == ["go", *(f"m{n}" for n in range(10))]
        assert (await closed(handle))["turns"] == 11


async def test_a_failed_turn_does_not_end_the_session(client: Client, cache: int) -> None:
    def fails(messages: list[ModelMessage], info: AgentInfo) -> Any:
        raise UnexpectedModelBehavior("the provider is confused")

    async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return fails(messages, info) if last_text(messages) == "fail" else answer("fine", [], info, 0)

    async with working(client, App(agents=[Agent(FunctionModel(model), name="moody")]), cache=cache) as runs:
        handle = await runs.start("moody", "fail", **SESSION)
        failed = await turn(handle, turn=1)
        assert (failed["state"], failed["error"]["type"]) == ("failed", "UnexpectedModelBehavior")
        assert await answered(handle, "go on") == "fine"
        await send(handle, "fail", id="last")
        await turn(handle, message="last")
        result = await closed(handle)
        assert (result["output"], result["failure"]["type"]) == ("fine", "UnexpectedModelBehavior")


async def test_an_idle_session_closes_by_itself_but_not_while_a_call_waits(client: Client, cache: int) -> None:
    script = Script({"refund": {"n": 1}}, "done", "more")
    async with working(client, shop(script, []), cache=cache) as runs:
        handle = await runs.start("shop", "go", session={"idle_timeout": "PT0.5S"})
        (row,) = await pending(handle, 1)
        await asyncio.sleep(1)
        assert (await handle.query("status"))["state"] == "waiting"
        await update(handle, "deny", {"call": row["call"], "by": "ann"})
        assert (await handle.result())["output"] == "done"
        assert (await handle.query("status"))["state"] == "done"


async def test_closing_lets_what_waits_be_decided_and_what_is_queued_be_answered(client: Client, cache: int) -> None:
    script = Script({"refund": {"n": 1}}, "done", "more")
    async with working(client, shop(script, []), cache=cache) as runs:
        handle = await runs.start("shop", "go", **SESSION)
        (row,) = await pending(handle, 1)
        await send(handle, "one more", id="more")
        assert await update(handle, "close", {"by": "ann"}) == {"state": "closing"}
        assert await update(handle, "close", {}) == {"state": "closing"}
        assert "SessionClosing" in await refused(handle, "send", {"content": "late"})
        assert (await send(handle, "again", id="more"))["state"] == "queued"
        await handle.signal("send", {"content": "late", "id": "late"})
        await update(handle, "deny", {"call": row["call"], "by": "ann"})
        assert (await handle.result())["output"] == "more"
        assert [row["reason"] for row in (await handle.query("status"))["rejected"]] != []


async def test_cancelling_a_session_ends_it_with_every_call_answered(client: Client, cache: int) -> None:
    gate = Gate()
    async with working(client, gate.app(), cache=cache) as runs:
        handle = await runs.start("gate", "work", **SESSION)
        await pending(handle, 1)
        await until(lambda: gate.ran == ["began 1"])
        await cancelled(handle)
        assert {id: kind for id, (kind, _) in (await answers(handle)).items()} == {
            "w1": "interrupted",
            "r2": "interrupted",
        }
    async with working(client, gate.app(), cache=cache) as runs:
        idle = await runs.start("gate", **SESSION)
        await until(lambda: idle.query("status"))
        await cancelled(idle)


@pytest.mark.parametrize(
    ("verb", "argument", "problem"),
    [
        ("send", {}, "request.content: Field required"),
        ("send", {"content": ""}, "the message is empty"),
        ("send", {"content": "x", "when_busy": "now"}, "'queue', 'steer' or 'interrupt'"),
        ("send", {"content": "x", "wen_busy": "queue"}, "Known fields: 'content', 'when_busy', 'id', 'by'"),
        ("send", {"content": "x" * 1_000_000}, "the message has 1000002 bytes; messages that wait may have 1000000"),
        ("send", {"content": "x", "id": "x" * 201}, "at most 200 characters"),
        ("interrupt", {}, "no turn is running: the run is idle"),
        ("interrupt", {"why": ""}, "Known fields: 'by', 'reason'"),
        ("close", {"reason": 3}, "request.reason"),
    ],
)
async def test_bad_messages_are_refused_naming_what_is_wrong(
    client: Client, verb: str, argument: dict[str, Any], problem: str
) -> None:
    async with working(client, shop(Script("done"), [])) as runs:
        handle = await runs.start("shop", **SESSION)

        async def idle() -> bool:
            return (await handle.query("status"))["state"] == "idle"

        await until(idle)
        assert problem in await refused(handle, verb, argument)
        await handle.signal(verb, argument)
        (row,) = (await handle.query("status"))["rejected"]
        assert problem in row["reason"]
        assert await answered(handle, "x" * 999_990) == "done"
        await closed(handle)


BAD_PARTS: list[Any] = [
    [{"kind": "image-url"}],
    [{"kind": "binary", "data": "!!!", "media_type": "image/png"}],
    [{"kind": "nothing"}],
    [3],
    ["fine", None],
]


@pytest.mark.parametrize("content", BAD_PARTS, ids=repr)
async def test_a_bad_content_part_fails_its_turn_and_never_gets_into_the_transcript(
    client: Client, cache: int, content: list[Any]
) -> None:
    script = Script({"refund": {"n": 1}}, "done", "again")
    async with working(client, shop(script, []), cache=cache) as runs:
        handle = await runs.start("shop", "go", **SESSION)
        (row,) = await pending(handle, 1)
        await update(handle, "send", {"content": content, "id": "bad", "when_busy": "steer"})
        await update(handle, "deny", {"call": row["call"], "by": "ann"})
        failed = await turn(handle, message="bad")
        assert (failed["turn"], failed["state"], failed["error"]["type"]) == (2, "failed", "InvalidRequest")
        assert "the content is neither text nor a list of content parts" in failed["error"]["message"]
        assert await answered(handle, "and now") == "again"
        assert await user_texts(handle) == ["go", "and now"]
        assert (await closed(handle))["output"] == "again"


async def test_a_list_of_parts_is_sent_and_joins(client: Client, cache: int) -> None:
    script = Script({"refund": {"n": 1}}, "done", "again")
    async with working(client, shop(script, []), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        url = {"kind": "image-url", "url": "https://example.com/a.png"}
        await update(handle, "send", {"content": ["look", url], "when_busy": "steer"})
        await update(handle, "send", {"content": [3]})
        await update(handle, "deny", {"call": row["call"], "by": "ann"})
        result = await handle.result()
        assert (result["output"], result["failure"]["type"], result["turns"]) == ("done", "InvalidRequest", 2)
        assert [part.part_kind for part in script.requests[-1][-1].parts] == ["tool-return", "user-prompt"]


async def test_the_prompt_is_a_message_from_the_first_moment(client: Client) -> None:
    """Before any worker has seen the run: its id is taken, a close counts, and what is asked has an answer."""
    queue = f"q-{uuid.uuid4().hex[:8]}"
    handle: Any = await client.start_workflow(
        "AgentWorkflow",
        {"agent": "shop", "prompt": "first", "session": {}},
        id=f"early-{uuid.uuid4().hex[:8]}",
        task_queue=queue,
        execution_timeout=timedelta(seconds=60),
        start_signal="send",
        start_signal_args=[{"content": "again", "id": "prompt"}],
    )
    await handle.signal("send", {"content": "second", "id": "b", "when_busy": "interrupt"})
    await handle.signal("close", {})
    async with working(client, shop(Script("one", "two"), []), task_queue=queue) as runs:
        runs.handles.append(handle)
        first = await handle.query("turn", {"message": "prompt"})
        assert first["messages"] == ["prompt"]
        result = await handle.result()
        assert (result["output"], result["turns"]) == ("two", 2)
        assert await user_texts(handle) == ["first", "second"]


async def test_a_cancelled_session_says_what_became_of_its_messages(client: Client, cache: int) -> None:
    gate = Gate()
    async with working(client, gate.app(), cache=cache) as runs:
        handle = await runs.start("gate", "work", **SESSION)
        await until(lambda: gate.ran == ["began 1"])
        await send(handle, "never", id="never")
        await cancelled(handle)
        assert (await handle.query("turn", {"turn": 1}))["error"]["type"] == "Cancelled"
        late = await handle.query("turn", {"message": "never"})
        assert (late["state"], late["error"]["type"]) == ("failed", "RunClosed")


async def test_errors_of_past_turns_are_kept_short(client: Client) -> None:
    script = Script(*[{"refund": {"n": n}} for n in range(25)])
    async with working(client, shop(script, [])) as runs:
        handle = await runs.start("shop", **SESSION)
        for n in range(25):
            await send(handle, f"m{n}", id=f"m{n}")
            await pending(handle, 1)
            await update(handle, "interrupt", {"reason": "x" * 9_000})
            ended = await turn(handle, message=f"m{n}")
            assert 2_000 < len(ended["error"]["message"]) < 2_100
        assert len((await handle.query("turn", {"turn": 2}))["error"]["message"]) < 150
        await closed(handle)
