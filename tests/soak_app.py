"""A worker of the long session: `python -m tests.soak_app ADDRESS QUEUE FOLDER [GRACE]`.

A message `turn N` has the calls of `calls_of(N)` and then an answer. What truly happens is appended to `FOLDER/asked`
(the model) and `FOLDER/ran` (a tool has its effect). Where `FOLDER/dies` says so, the worker kills itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from perdure import App, Approval, DurableAgent, Limits, ToolPolicy, current_call
from tests.crash_app import append, serve

AGENT = "soak"
UNSAFE = ("post", "refund")


def calls_of(n: int) -> list[str]:
    """The tools that are called in turn `n`: `read` is safe, `note` idempotent, `post` unsafe, `refund` gated."""
    plain = [["read"], ["note"], ["post"], ["read", "note", "post"]][n % 4]
    return [*plain, "refund"] if n % 10 == 5 else plain


def soak_app(folder: Path) -> App:
    """One agent, which follows `calls_of`."""

    async def ask(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        n, answered = _where(messages)
        place = "asked again" if answered else "asked"
        append(folder / "asked", n=n, place=place)
        _die(folder, n, place)
        if answered:
            return ModelResponse(
                parts=[TextPart(answer_of(n, {part.tool_name: str(part.outcome) for part in answered}))]
            )
        return ModelResponse(parts=[ToolCallPart(tool, {"n": n}, tool_call_id=f"{tool}-{n}") for tool in calls_of(n)])

    tools = FunctionToolset[None](id="soak")

    def add(tool: str) -> None:
        def work(n: int) -> str:
            call = current_call()
            append(folder / "ran", tool=tool, n=n, attempt=call.attempt, key=call.idempotency_key)
            if call.attempt == 1:
                _die(folder, n, tool)
            return f"{tool} {n}"

        tools.tool_plain(name=tool)(work)

    for tool in ("read", "note", "post", "refund"):
        add(tool)
    often: dict[str, Any] = {"heartbeat": 2, "attempts": 20, "backoff": 0.1}
    policies = {
        "read": ToolPolicy(effect="safe", **often),
        "note": ToolPolicy(effect="idempotent", **often),
        "post": ToolPolicy(heartbeat=2),
        "refund": ToolPolicy(heartbeat=2, approval=Approval()),
    }
    make: Any = Agent
    agent = make(FunctionModel(ask), name=AGENT, toolsets=[tools])
    limits = Limits(requests=None)
    return App(agents=[DurableAgent(agent, policies=policies, limits=limits, model_timeout=2, model_attempts=20)])


def answer_of(n: int, outcomes: dict[str, str]) -> str:
    """What the model says in the end, of the outcomes by tool."""
    return f"answer {n}: {' '.join(f'{tool}={outcome}' for tool, outcome in sorted(outcomes.items()))}"


def _where(messages: list[ModelMessage]) -> tuple[int, list[Any]]:
    """The number of the turn, and the answers to its calls."""
    n = 0
    answered: list[Any] = []
    for part in _parts(messages):
        if isinstance(part, UserPromptPart):
            n, answered = int(str(part.content).removeprefix("turn ")), []
        elif part.part_kind == "tool-return":
            answered.append(part)
    return n, answered


def _parts(messages: list[ModelMessage]) -> Iterator[Any]:
    for message in messages:
        yield from message.parts


def _die(folder: Path, n: int, place: str) -> None:
    """Kill this worker, once for each place."""
    died = folder / f"died-{n}-{place}"
    if [n, place] in json.loads((folder / "dies").read_text()) and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(serve(soak_app, *sys.argv[1:]))
