"""A worker to be killed while people decide: `python -m tests.approval_crash_app ADDRESS QUEUE FOLDER [GRACE]`.

The prompt is the name of a case of `tests.approval_cases`; the metadata `{"then": …}` says what a gated tool does in
its first attempt. What truly happens is appended to `FOLDER/asked` (the model), `FOLDER/begun` and `FOLDER/ran` (a
gated tool begins, has its effect).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio import activity

from perdure import App, Approval, DurableAgent, ToolPolicy, current_call
from tests.approval_cases import CASES, Case
from tests.crash_app import append, serve
from tests.scripts import Script

AGENT = "bank"


def approval_app(folder: Path) -> App:
    """One agent, whose model follows the case that the prompt names."""

    async def ask(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        prompt = next(part.content for message in messages for part in message.parts if part.part_kind == "user-prompt")
        append(folder / "asked", run=activity.info().workflow_id)
        return Script(_calls(CASES[str(prompt)]), "done")(messages, info)

    make: Any = Agent
    agent = make(FunctionModel(ask), name=AGENT, toolsets=[_tools(folder)])
    approval = Approval()
    policies = {
        "refund": ToolPolicy(heartbeat=5, approval=approval),
        "delete": ToolPolicy(heartbeat=5),
        "pay": ToolPolicy(heartbeat=5, effect="idempotent", attempts=3, backoff=0.1, approval=approval),
        "transfer": ToolPolicy(heartbeat=5, approval=Approval(approvers=["ann", "bob"], quorum=2)),
    }
    return App(agents=[DurableAgent(agent, policies=policies)])


def _calls(case: Case) -> list[ModelResponsePart]:
    parts = [ToolCallPart(tool, {"n": n}) for tool, n in case.calls]
    for part, id in zip(parts, case.ids, strict=False):
        part.tool_call_id = id
    return list(parts)


def _tools(folder: Path) -> FunctionToolset[None]:
    tools = FunctionToolset[None](id="bank")

    @tools.tool_plain
    def look(n: int) -> str:
        """Harmless."""
        append(folder / "ran", run=current_call().workflow_id, tool="look", n=n, attempt=1, key="")
        return f"look {n}"

    @tools.tool
    async def refund(ctx: RunContext[None], n: int) -> str:
        """Gated, once."""
        return await _effect(folder, ctx, "refund", n)

    @tools.tool(requires_approval=True)
    async def delete(ctx: RunContext[None], n: int) -> str:
        """Gated by Pydantic AI, once."""
        return await _effect(folder, ctx, "delete", n)

    @tools.tool
    async def pay(ctx: RunContext[None], n: int) -> str:
        """Gated, repeated with the same key."""
        return await _effect(folder, ctx, "pay", n)

    @tools.tool
    async def transfer(ctx: RunContext[None], n: int) -> str:
        """Gated by two people, once."""
        return await _effect(folder, ctx, "transfer", n)

    return tools


async def _effect(folder: Path, ctx: RunContext[None], tool: str, n: int) -> str:
    assert ctx.tool_call_approved
    call = current_call()
    then = call.metadata["then"] if call.attempt == 1 else ""
    row = {"run": call.workflow_id, "tool": tool, "n": n, "attempt": call.attempt, "key": call.idempotency_key}
    append(folder / "begun", **row)
    if then == "begins":
        await asyncio.Event().wait()
    append(folder / "ran", **row)
    if then == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if then == "holds":
        await asyncio.Event().wait()
    if then == "raises":
        raise ConnectionError("reset by peer")
    return f"{tool} {n}"


if __name__ == "__main__":
    asyncio.run(serve(approval_app, *sys.argv[1:]))
