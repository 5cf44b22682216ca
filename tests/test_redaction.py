"""The text of an exception may hold a secret: it goes to the worker's log, never into history or to the model."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset, RunContext
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy
from tests.harness import Handle, Runs, working
from tests.reading import everything
from tests.scripts import Script

SECRET = "password=hunter2"


def leaky(_: object, __: object) -> None:
    """deps that fail."""
    raise RuntimeError(SECRET)


def agent(place: str) -> DurableAgent:
    """An agent that raises the secret at one place."""
    tools = FunctionToolset[None](id="tools")

    @tools.tool_plain
    def act() -> str:
        """Fails where it should."""
        raise RuntimeError(SECRET)

    def final(text: str) -> str:
        """An output function."""
        if place == "output function":
            raise RuntimeError(SECRET)
        return text

    def instructions(_: RunContext[None]) -> str:
        if place == "instructions":
            raise RuntimeError(SECRET)
        return "be good"

    done: dict[str, Any] = {"final_result": {"text": "done"}}
    script = Script({"act": {}} if "tool" in place else done, done)
    made: Any = Agent(script.model, name="leaky", toolsets=[tools], output_type=final, instructions=instructions)  # pyright: ignore
    effect = "safe" if place == "repeated tool" else "unsafe"
    policies = {"act": ToolPolicy(effect=effect, attempts=2 if effect == "safe" else 1, backoff=0.01)}
    return DurableAgent(made, policies=policies, deps=leaky if place == "deps" else None, model_attempts=1)


@pytest.mark.parametrize("place", ["tool", "repeated tool", "output function", "instructions", "deps"])
async def test_a_secret_of_an_exception_is_nowhere_in_history(client: Client, place: str) -> None:
    async with working(client, App(agents=[agent(place)])) as runs:
        handle = await ended(runs)
        history = await everything(handle)
    assert "RuntimeError" in history
    assert "hunter2" not in history


async def ended(runs: Runs) -> Handle:
    """A run that has ended, however."""
    handle = await runs.start("leaky", "go")
    history = handle.fetch_history_events(wait_new_event=True)
    async for event in history:
        if event.HasField("workflow_execution_completed_event_attributes"):
            break
        if event.HasField("workflow_execution_failed_event_attributes"):
            break
    return handle
