"""Runs that continue as new at a moment that a test chooses, and all that they came to.

The server of `rolling_client` suggests it after 20 events. `pushed` makes so many events at one moment that the run
rolls over there; the same on the ordinary server must come to the same.
"""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta
from operator import itemgetter
from typing import Any

from pydantic_ai import Agent, CallDeferred, FunctionToolset, ModelRetry, RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from perdure import App, Approval, DurableAgent, ToolPolicy
from perdure.contracts import Notification
from tests.harness import Handle
from tests.scripts import Script

HOUR = timedelta(hours=1)
TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)?")


class Office:
    """An agent with a tool of every kind, and everything that ever happened outside."""

    def __init__(self, *turns: Any) -> None:
        self.script = Script(*turns)
        self.ran: list[Any] = []
        self.told: list[tuple[str, str]] = []
        self.handed: list[str] = []

    async def notifier(self, notification: Notification) -> None:
        self.told.append((notification.event, notification.call))

    async def dispatch(self, call: Any) -> None:
        self.handed.append(call.call)

    def app(self) -> App:
        tools = FunctionToolset[None](id="office", max_retries=2)
        outside = ExternalToolset[None]([ToolDefinition(name="outside")], id="outside")

        @tools.tool_plain
        def look(n: int) -> str:
            self.ran.append(("look", n))
            return f"saw {n}"

        @tools.tool_plain
        def refund(n: int) -> str:
            self.ran.append(("refund", n))
            return f"refunded {n}"

        @tools.tool_plain(sequential=True)
        def transfer(n: int) -> str:
            self.ran.append(("transfer", n))
            return f"transferred {n}"

        @tools.tool_plain
        def moody(n: int) -> str:
            self.ran.append(("moody", n))
            if n < 2:
                raise ModelRetry(f"not {n}")
            return f"fine with {n}"

        @tools.tool
        def asks(ctx: RunContext[None], n: int) -> str:
            self.ran.append(("asks", n))
            raise CallDeferred

        both = Approval(approvers=["ann", "bob"], quorum=2, expires_after=HOUR, reminders=[HOUR / 2], allow_edit=True)
        policies = {
            "refund": ToolPolicy(approval=both),
            "transfer": ToolPolicy(approval=Approval()),
            "outside": ToolPolicy(dispatch=self.dispatch, wait=HOUR),
        }
        agents = [DurableAgent(Agent(self.script.model, name="office", toolsets=[tools, outside]), policies=policies)]
        return App(agents=agents, notifier=self.notifier)


PAUSES = [0.1] * 20 + [1.0] * 10
"""Seconds between events: a run continues when nothing comes for a moment, which on a busy machine is a long one."""


async def run_ids(handle: Handle) -> str:
    """The run id of the chain's latest run."""
    return (await handle.describe()).run_id


async def pushed(handle: Handle, rolls: bool, vote: dict[str, Any] | None = None) -> None:
    """Roll over here and now, where the server suggests it; else nothing. A vote that is given once more changes
    nothing, but something was done; a signal that nobody knows is only events: it rolls a run over only where
    something was done since the last time."""
    before = await run_ids(handle)
    for pause in PAUSES if rolls else ():
        await handle.signal("approve" if vote else "nothing", vote or {})
        await asyncio.sleep(pause)
        if await run_ids(handle) != before:
            return
    assert not (rolls and vote), "the run didn't roll over"


async def compared(handle: Handle, office: Office) -> dict[str, Any]:
    """All that a run came to, without times."""
    page = await handle.query("transcript", {})
    status = await handle.query("status")
    known: dict[str, Any] = {
        "entries": page["entries"],
        "audit": await handle.query("audit"),
        "usage": status["usage"],
        "result": await handle.result(),
        "ran": sorted(office.ran),
        "told": sorted(office.told),
        "handed": office.handed,
        "requests": len(office.script.requests),
    }
    assert known["result"].pop("audit") == known["audit"]
    known["audit"].sort(key=itemgetter("call"))  # what happens to two calls at once has no order
    return json.loads(TIMES.sub("T", json.dumps(known)))


async def events(handle: Handle, before: str) -> None:
    """Events, until the run has continued as new or there were so many that it must have, were it at rest."""
    for _ in range(25):
        await handle.signal("nothing", {})
        if await run_ids(handle) != before:
            return
