"""The Temporal Web UI in a real browser, used as a person does: its start form, the details of a run, its dialogs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

from playwright.async_api import Browser, FrameLocator, Locator, Page, Request, async_playwright, expect

CHROMIUM = shutil.which("chromium")
FLAGS = ["--disable-gpu", "--disable-quic", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
"""The last one is for the browser's own services too: no name or address but 127.0.0.1 can be reached."""
PATIENCE = 60_000
"""Milliseconds that something may take to show, on a machine with much else to do. Only a failure takes so long."""


@asynccontextmanager
async def chromium() -> AsyncGenerator[Browser]:
    """The browser, while the block runs. Its profile is a temporary folder."""
    expect.set_options(timeout=PATIENCE)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


class WebUI:
    """A page of the browser on the Web UI at `address`."""

    def __init__(self, page: Page, address: str) -> None:
        page.set_default_timeout(PATIENCE)
        self.page = page
        self.address = address
        self.images: list[str] = []
        """Addresses of the images that pages have asked for, but for the Web UI's own, in order. An image that the
        page's security policy refuses is here too."""
        page.on("request", self._note)

    async def start(self, workflow_id: str, task_queue: str, request: Any) -> None:
        """Start a run in the form *Start Workflow*."""
        await self.page.goto(f"{self.address}/namespaces/default/workflows/start-workflow")
        await self.page.locator("#workflowId").fill(workflow_id)
        await self.page.locator("#taskQueue").fill(task_queue)
        await self.page.locator("#workflowType").fill("AgentWorkflow")
        await fill_data(self.page.get_by_label("Data"), json.dumps(request, indent=2))
        sent = re.compile(rf"/api/v1/namespaces/default/workflows/{re.escape(workflow_id)}\?")
        async with self.page.expect_response(sent) as response:
            await self.page.get_by_role("button", name="Start Workflow").click()
        assert (await response.value).ok

    async def current_details(self, workflow_id: str) -> FrameLocator:
        """Open a run, and there *Current Details* under *User Metadata*. They don't refresh by themselves."""
        await self.page.goto(f"{self.address}/namespaces/default/workflows/{workflow_id}")
        await self.page.get_by_role("tab", name="User Metadata").click()
        details = self.page.frame_locator("#user-metadata-current-details")
        await details.locator("main").wait_for()
        return details

    async def send(self, kind: Literal["Signal", "Update"], name: str, data: str) -> Locator:
        """Send a signal or an update from the page of a run, and return the dialog, which stays open after a refusal.
        One dialog per page: a second one shows the text of the first and sends nothing."""
        await self.page.get_by_role("button", name="More Actions").click()
        await self.page.get_by_role("menuitem", name=re.compile(f"Send an? {kind}")).click()
        dialog = self.page.get_by_role("dialog")
        await dialog.locator('button[aria-haspopup="true"]').click()
        await dialog.get_by_role("option", name=name).click()
        await submit(dialog, data)
        return dialog

    async def expect_status(self, status: str) -> None:
        """Wait until the page of a run shows this status."""
        await expect(self.page.get_by_test_id("execution-status")).to_have_text(status)

    def _note(self, request: Request) -> None:
        if request.resource_type == "image" and not request.url.startswith(f"{self.address}/_app/"):
            self.images.append(request.url)


async def submit(dialog: Locator, data: str) -> None:
    """Fill in a dialog and submit it. `data` is indented JSON: the editor indents it when it is left, and a dialog that
    grows then loses the click."""
    await fill_data(dialog.get_by_label("Data"), data)
    await dialog.get_by_role("button", name="Submit").click()


async def fill_data(editor: Locator, data: str) -> None:
    """Replace the text of an editor. Typed keys wouldn't do: it adds closing brackets by itself."""
    await editor.fill("")
    await editor.fill(data)
    await editor.blur()
