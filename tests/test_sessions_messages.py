"""Messages of a session: which are refused, parts of content, and the prompt as the first."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from perdure.workflows.agent import AgentWorkflow
from tests.deciding import pending, refused, update
from tests.harness import TIMEOUT, working
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed, idle, turn, user_texts
from tests.shop import shop


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
        await idle(handle)
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


async def test_a_message_of_parts_waits_for_a_worker_as_long_as_it_takes(client: Client) -> None:
    app = shop(Script("one", "two"), [])
    async with working(client, app, check=False) as runs:
        handle = await runs.start("shop", "go", **SESSION)
        await turn(handle, turn=1)
    async with Worker(client, task_queue=runs.task_queue, workflows=[AgentWorkflow]):
        await update(handle, "send", {"content": ["hello"], "id": "m"})
    history = await handle.fetch_history()
    (check,) = [
        event.activity_task_scheduled_event_attributes
        for event in history.events
        if event.activity_task_scheduled_event_attributes.activity_type.name == "check_content"
    ]
    assert check.schedule_to_start_timeout.seconds == check.schedule_to_close_timeout.seconds == TIMEOUT.seconds
    async with working(client, app, task_queue=runs.task_queue):
        assert (await turn(handle, message="m"))["output"]["value"] == "two"
        await closed(handle)
