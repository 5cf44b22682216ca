"""Sessions: turns, the queue, steering, interrupting, closing."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from temporalio.client import Client

from perdure.client import PerdureClient, RunClosed
from perdure.contracts import Output
from tests.harness import working
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed
from tests.test_approvals import shop


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
