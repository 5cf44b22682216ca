"""A person decides in the Temporal Web UI, in a real browser. Skipped where there is none: `make browser`."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, expect
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.models.function import FunctionModel
from temporalio.api.enums.v1 import EventType

from perdure import App, Approval, DurableAgent, ToolPolicy
from perdure.dev import DevServer, dev_server
from tests.command import free_port
from tests.deciding import pending, refused
from tests.harness import activities, until, working
from tests.reading import events
from tests.scripts import Script
from tests.web_ui import CHROMIUM, WebUI, chromium, submit

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH: `make browser` installs it"),
    pytest.mark.timeout(300),  # a browser is slow where much else runs
]

NOTE = "<img src=x onerror=alert(1)> ![x](http://127.0.0.1:9/x.png)"
"""What a model might be talked into writing: two images, as HTML and as Markdown."""
TRAPS = "$5 and $6, 1/2 ... `x` \"y\" 'z'  **b** https://x.example/ | a\n    b \u202egnp.exe"
"""What Markdown, or a browser, would show as something else than it is."""
ARGS = {"order": "A-1003", "cents": 8990, "note": NOTE, "more": TRAPS}


@pytest.fixture(scope="module")
async def server() -> AsyncGenerator[DevServer]:
    """A server with the Web UI: that of the session has none."""
    async with dev_server(port=free_port(), ui_port=free_port()) as started:
        yield started


@pytest.fixture(scope="module")
async def browser() -> AsyncGenerator[Browser]:
    """One browser for all tests."""
    async with chromium() as started:
        yield started


@pytest.fixture
async def web_ui(server: DevServer, browser: Browser) -> AsyncGenerator[WebUI]:
    """A page without cookies or storage of another test."""
    assert server.ui
    context = await browser.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme="light", locale="en-US", timezone_id="UTC"
    )
    async with context:
        yield WebUI(await context.new_page(), server.ui)


def shop(ran: list[Any]) -> App:
    """An agent whose only tool is gated, and notes the arguments it has truly run with."""
    tools = FunctionToolset[object](id="shop")

    @tools.tool_plain
    def refund(order: str, cents: int, note: str, more: str) -> str:
        """Pay money back."""
        ran.append({"order": order, "cents": cents, "note": note, "more": more})
        return "refunded"

    model = FunctionModel(Script({"refund": ARGS}, "The money is on its way."), model_name="scripted")
    agent = Agent(model, name="shop", toolsets=[tools])
    return App(agents=[DurableAgent(agent, policies={"refund": ToolPolicy(approval=Approval())})])


async def test_a_person_starts_a_run_and_approves_by_signal(server: DevServer, web_ui: WebUI) -> None:
    ran: list[Any] = []
    async with working(server.client, shop(ran)) as runs:
        await web_ui.start("order-A-1003", runs.task_queue, {"agent": "shop", "prompt": "Refund order A-1003."})
        handle = server.client.get_workflow_handle("order-A-1003")
        runs.handles.append(handle)
        (row,) = await pending(handle, 1)

        details = await web_ui.current_details(handle.id)
        await expect(details.locator("img")).to_have_count(0)
        arguments = await details.locator("pre", has_text='"order"').inner_text()
        assert json.loads(arguments) == ARGS
        assert "\u202e" not in arguments
        shown = details.locator("pre", has_text='"call"')
        await shown.scroll_into_view_if_needed()
        await expect(shown).to_be_in_viewport(ratio=1)
        if path := os.environ.get("PERDURE_SCREENSHOT"):
            await web_ui.page.screenshot(path=path)
        assert not ran

        await web_ui.send("Signal", "approve", (await shown.inner_text()).strip())
        await web_ui.expect_status("Completed")
        result = await handle.result()
        assert result["output"] == "The money is on its way."
        assert await activities(handle) == ["model_request", "tool:refund", "model_request"]
    assert ran == [row["args"]] == [ARGS]
    assert [(one["event"], one["call"]) for one in result["audit"]] == [
        (event, row["call"]) for event in ("asked", "approved", "ran")
    ]
    assert (result["audit"][1]["by"], result["audit"][1]["via"]) == ("your name", "signal")
    assert web_ui.images == []


async def test_a_refused_update_says_why_and_leaves_no_trace(server: DevServer, web_ui: WebUI) -> None:
    ran: list[Any] = []
    async with working(server.client, shop(ran)) as runs:
        handle = await runs.start("shop", "Refund order A-1003.")
        (row,) = await pending(handle, 1)
        unknown = {"call": "9.9-0000", "by": "ann"}
        told = await refused(handle, "approve", unknown)

        await web_ui.current_details(handle.id)
        dialog = await web_ui.send("Update", "approve", json.dumps(unknown, indent=2))
        alert = dialog.get_by_role("alert").filter(has_text="9.9-0000")
        await expect(alert).to_be_visible()
        assert f"NotPending: {(await alert.inner_text()).splitlines()[0]}" == told
        assert row["call"] in told
        assert EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED not in await events(handle)
        assert not ran

        await submit(dialog, json.dumps({"call": row["call"], "by": "ann"}, indent=2))
        result = await handle.result()
    assert ran == [ARGS]
    (approved,) = [one for one in result["audit"] if one["event"] == "approved"]
    assert (approved["by"], approved["via"]) == ("ann", "update")


async def test_images_that_are_not_escaped_would_be_asked_for(web_ui: WebUI) -> None:
    await web_ui.page.goto(f"{web_ui.address}/render?content={quote(NOTE)}")
    await until(lambda: web_ui.images == [f"{web_ui.address}/x", "http://127.0.0.1:9/x.png"])
