"""Telling people what waits: the notifier, the webhook, reminders. Its failure never holds up a run."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
import uvicorn
from pydantic_ai.messages import ToolCallPart
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from perdure import Approval, DeclarationError, Notification
from perdure.webhook import Webhook
from tests.deciding import pending, update
from tests.harness import Handle, activities, until, working
from tests.reading import everything
from tests.scripts import Script
from tests.shop import shop
from tests.skipping import DAY, YEARS, skip

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()


async def test_people_are_told_of_everything_they_need(clock: WorkflowEnvironment, cache: int) -> None:
    told: list[Notification] = []

    async def notifier(notification: Notification) -> None:
        told.append(notification)

    approval = Approval(approvers=["ann", "bob"], quorum=2, reminders=[DAY])
    script = Script([ToolCallPart("refund", {"n": 1})], "done")
    async with working(clock.client, shop(script, [], approval, notifier=notifier), cache=cache) as runs:
        handle = await runs.start("shop", "go", timeout=YEARS, by="carl", metadata={"team": "x"})
        (row,) = await pending(handle, 1)
        await update(handle, "approve", {"call": row["call"], "by": "ann"})
        await skip(clock, handle, 1.1 * DAY)
        await until(lambda: len(told) == 2)
        await update(handle, "approve", {"call": row["call"], "by": "bob", "reason": "seen"})
        result = await handle.result()
    asked, reminded, decided = told
    assert [one.event for one in told] == ["asked", "reminded", "decided"]
    assert (asked.workflow_id, asked.agent, asked.started_by) == (handle.id, "shop", "carl")
    assert (asked.call, asked.tool, asked.args) == (row["call"], "refund", {"n": 1, "note": "none"})
    assert (asked.approvers, asked.needed, asked.run_metadata) == (["ann", "bob"], 2, {"team": "x"})
    assert (reminded.votes, reminded.needed) == (["ann"], 1)
    assert (decided.outcome, decided.by, decided.verified, decided.reason) == ("approved", "bob", False, "seen")
    assert len({one.id for one in told}) == 3
    assert [row["event"] for row in result["audit"]] == ["asked", "voted", "reminded", "approved", "ran"]


async def test_a_notifier_that_fails_holds_up_nothing_and_shows(client: Client) -> None:
    async def broken(notification: Notification) -> None:
        raise ConnectionError("secret address")

    ran: list[object] = []
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), ran, notifier=broken)) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        await update(handle, "approve", {"call": row["call"]})
        assert (await handle.result())["output"] == "done"
        assert "secret address" not in await everything(handle)
        events = [event.event_type for event in (await handle.fetch_history()).events]
        assert EventType.EVENT_TYPE_TIMER_FIRED in events, "the run waits a little for what is being sent, then ends"
    assert ran == [("refund", 1)]


class Receiver:
    """A real HTTP server that answers as told, one status after the other."""

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers)
        self.got: list[tuple[dict[str, str], bytes]] = []

    async def hook(self, request: Request) -> Response:
        self.got.append((dict(request.headers), await request.body()))
        return Response(status_code=self.answers.pop(0) if self.answers else 204)

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[str]:
        app = Starlette(routes=[Route("/hook", self.hook, methods=["POST"])])
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
        task = asyncio.create_task(server.serve())
        try:
            await until(lambda: server.started)
            port = server.servers[0].sockets[0].getsockname()[1]
            yield f"http://127.0.0.1:{port}/hook"
        finally:
            server.should_exit = True
            await task


async def test_the_webhook_signs_and_repeats(client: Client) -> None:
    receiver = Receiver(503)
    async with receiver.serving() as url:
        app = shop(Script({"refund": {"n": 1}}, "done"), [], notifier=Webhook(url, SECRET))
        async with working(client, app) as runs:
            handle = await runs.start("shop", "go")
            (row,) = await pending(handle, 1)
            await until(lambda: len(receiver.got) == 2)
            await update(handle, "deny", {"call": row["call"], "reason": "no"})
            await handle.result()
    first, again, decided = receiver.got
    assert first[0]["webhook-id"] == again[0]["webhook-id"] != decided[0]["webhook-id"]
    assert [json.loads(body)["event"] for _, body in receiver.got] == ["asked", "asked", "decided"]
    for headers, body in receiver.got:
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        expected = base64.b64encode(hmac.new(b"s" * 32, signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{expected}"


async def unsent(handle: Handle) -> bool:
    return bool((await handle.query("status"))["unsent"])


async def test_a_webhook_that_refuses_is_not_asked_again(client: Client) -> None:
    receiver = Receiver(401, 401)
    async with receiver.serving() as url:
        app = shop(Script({"refund": {"n": 1}}, "done"), [], notifier=Webhook(url, SECRET))
        async with working(client, app) as runs:
            handle = await runs.start("shop", "go")
            (row,) = await pending(handle, 1)
            await until(lambda: unsent(handle))
            await update(handle, "approve", {"call": row["call"]})
            await handle.result()
            missed = (await handle.query("status"))["unsent"]
            assert await activities(handle) == ["model_request", "notify", "tool:refund", "notify", "model_request"]
    assert [(one["event"], one["reason"]) for one in missed] == [
        ("asked", "WebhookRefused: the webhook answered 401"),
        ("decided", "WebhookRefused: the webhook answered 401"),
    ]
    assert len(receiver.got) == 2


def test_webhooks_that_cannot_work_are_refused() -> None:
    for url, secret, why in (
        ("ftp://x", SECRET, "isn't an http or https address"),
        ("https://x", "whsec_???", "isn't base64"),
        ("https://x", "whsec_YWJj", "has 3 bytes"),
    ):
        with pytest.raises(DeclarationError, match=why):
            Webhook(url, secret)


def test_reminders_are_checked() -> None:
    for reminder in (timedelta(0), timedelta(hours=2)):
        with pytest.raises(DeclarationError, match="reminders"):
            Approval(reminders=[reminder], expires_after=timedelta(hours=1))
