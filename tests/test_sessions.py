"""Sessions: turns, the queue, steering, closing."""

from __future__ import annotations

import asyncio
import uuid
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
from tests.deciding import pending, refused, update
from tests.gate import last_text
from tests.harness import LONG, working
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


async def test_a_large_output_stays_the_result_where_later_turns_fail(client: Client) -> None:
    large = "x" * 250_000

    async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if last_text(messages) == "fail":
            raise UnexpectedModelBehavior("the provider is confused")
        return answer(large, [], info, 0)

    async with working(client, App(agents=[Agent(FunctionModel(model), name="moody")])) as runs:
        handle = await runs.start("moody", "go", **SESSION)
        assert await answered(handle, "once more") == large
        for _ in range(2):
            sent = await send(handle, "fail")
            assert (await turn(handle, message=sent["messages"][0]))["state"] == "failed"
        kept = [(await handle.query("turn", {"turn": number}))["left_out"] for number in (1, 2)]
        assert kept == [250_024, 0], "of two outputs the last one is kept whole"
        assert (await closed(handle))["output"] == large


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


async def test_errors_of_past_turns_are_kept_short(client: Client) -> None:
    script = Script(*[{"refund": {"n": n}} for n in range(25)])
    async with working(client, shop(script, [])) as runs:
        handle = await runs.start("shop", timeout=LONG, **SESSION)
        for n in range(25):
            await send(handle, f"m{n}", id=f"m{n}")
            await pending(handle, 1)
            await update(handle, "interrupt", {"reason": "x" * 9_000})
            ended = await turn(handle, message=f"m{n}")
            assert 2_000 < len(ended["error"]["message"]) < 2_100
        assert len((await handle.query("turn", {"turn": 2}))["error"]["message"]) < 150
        await closed(handle)
