"""A worker to be killed: `python -m tests.crash_app ADDRESS QUEUE FOLDER [GRACE]`.

What truly happens is appended to `FOLDER/ran` and `FOLDER/asked`. The prompt names what is held until `FOLDER/go`
exists: a tool (`unsafe`, `idempotent`, `safe`) or `model`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy, current_call
from perdure.contracts import Effect
from perdure.converter import data_converter
from perdure.worker import serving
from tests.harness import until

EFFECTS: tuple[Effect, ...] = ("unsafe", "idempotent", "safe")


def append(path: Path, **row: object) -> None:
    """Add a row to a file that every worker process writes."""
    with path.open("a") as file:
        file.write(json.dumps({"pid": os.getpid(), **row}) + "\n")


def crash_app(folder: Path) -> App:
    """One agent, whose first response calls the tool that the prompt names, and whose second tells what came of it."""

    async def released() -> None:
        await until(lambda: (folder / "go").exists(), seconds=120)

    async def ask(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        prompt = next(part.content for message in messages for part in message.parts if part.part_kind == "user-prompt")
        append(folder / "asked", requests=len(messages))
        last = messages[-1]
        answered = [p for p in last.parts if isinstance(p, ToolReturnPart)] if isinstance(last, ModelRequest) else []
        if prompt == "model":
            await released()
            return ModelResponse(parts=[TextPart("the model answered")])
        if answered:
            return ModelResponse(parts=[TextPart(f"{answered[0].outcome}: {answered[0].model_response_str()}")])
        return ModelResponse(parts=[ToolCallPart(str(prompt), {}, tool_call_id="c1")])

    async def run(effect: Effect) -> str:
        call = current_call()
        append(folder / "ran", tool=effect, attempt=call.attempt, key=call.idempotency_key)
        await released()
        return f"{effect} ran in attempt {call.attempt}"

    async def unsafe() -> str:
        return await run("unsafe")

    async def idempotent() -> str:
        return await run("idempotent")

    async def safe() -> str:
        return await run("safe")

    agent = Agent(FunctionModel(ask), name="crash", tools=[unsafe, idempotent, safe])
    policies = {name: ToolPolicy(effect=name, heartbeat=5, backoff=0.1) for name in EFFECTS}
    return App(agents=[DurableAgent(agent, policies=policies, model_timeout=3)])


async def serve(make: Callable[[Path], App], address: str, queue: str, folder: str, grace: str = "30") -> None:
    """Serve what `make` makes until SIGTERM; `FOLDER/ready-<pid>` says that the worker polls."""
    client = await Client.connect(address, data_converter=data_converter())
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with serving(client, make(Path(folder)), task_queue=queue, grace=timedelta(seconds=float(grace))):
        (Path(folder) / f"ready-{os.getpid()}").touch()
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve(crash_app, *sys.argv[1:]))
