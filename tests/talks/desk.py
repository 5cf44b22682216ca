"""The agent of the random sessions. Its model asks the player, so nothing happens before the player has seen it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import Agent, FunctionToolset, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio import activity

from perdure import App, Approval, DurableAgent, Limits, ToolPolicy, current_call

AGENT = "desk"
POLICIES = {
    "look": ToolPolicy(effect="safe"),
    "gated*": ToolPolicy(approval=Approval(approvers=["ann"], allow_edit=True)),
    "quorum": ToolPolicy(approval=Approval(approvers=["ann", "bob"], quorum=2, allow_edit=True)),
}


@dataclass
class Ask:
    """The model is being asked: what it was shown, and where its answer goes."""

    messages: list[ModelMessage]
    answer: asyncio.Future[ModelResponse | Exception]


@dataclass
class Log:
    """What truly happened in one session."""

    asks: asyncio.Queue[Ask] = field(default_factory=lambda: asyncio.Queue[Ask]())
    ran: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Tool and number of each call, when it has its effect."""
    keys: list[str] = field(default_factory=list[str])
    held: dict[int, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    """By number of the call: whether it may go on."""


Book = defaultdict[str, Log]
"""By workflow id; outlives the workers."""


def desk(book: Book) -> App:
    """A new app around a book."""

    async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        ask = Ask(list(messages), asyncio.get_running_loop().create_future())
        book[activity.info().workflow_id or ""].asks.put_nowait(ask)
        answer = await ask.answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    make: Any = Agent
    agent = make(FunctionModel(model), name=AGENT, toolsets=[_tools(book)], system_prompt="You sit at a desk.")
    return App(agents=[DurableAgent(agent, policies=POLICIES, limits=Limits(requests=None))])


def _tools(book: Book) -> FunctionToolset[None]:
    tools = FunctionToolset[None](id="desk", max_retries=20)

    def ran(tool: str, n: int) -> Log:
        call = current_call()
        log = book[call.workflow_id]
        log.ran.append((tool, n))
        log.keys.append(call.idempotency_key)
        return log

    def plain(tool: str) -> Any:
        async def work(n: int) -> str:
            ran(tool, n)
            return f"{tool} {n}"

        return work

    async def moody(n: int) -> str:
        ran("moody", n)
        raise ModelRetry(f"not {n}")

    async def hold(n: int) -> str:
        await ran("hold", n).held[n].wait()
        return f"held {n}"

    for name in ("look", "write", "gated", "quorum"):
        tools.tool_plain(name=name)(plain(name))
    for name in ("alone", "gated_alone"):
        tools.tool_plain(name=name, sequential=True)(plain(name))
    tools.tool_plain(moody)
    tools.tool_plain(hold)
    return tools
