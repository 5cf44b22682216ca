"""Code of users that calls `sys.exit()`, or raises a `CancelledError` that nobody asked for.

The worker outlives it, and what it was called for fails."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, Tool, ToolOutput
from pydantic_ai.capabilities import Hooks
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import App, Approval, DurableAgent, ToolPolicy
from tests.command import perdure
from tests.deciding import pending
from tests.harness import messages, working
from tests.reading import returns
from tests.scripts import Script, Turn

Leaves = Callable[..., Any]
ENDS = ["deps", "instructions", "hook", "model", "output function", "output validator", "args validator"]
"""Where it ends the run."""


def exits(*_: Any, **__: Any) -> Any:
    """Ends the program, as argparse does after `--help`."""
    sys.exit(2)


def cancels(*_: Any, **__: Any) -> Any:
    """As code does that awaits a task which other code has cancelled."""
    raise asyncio.CancelledError


WAYS: list[tuple[Leaves, str]] = [(exits, "Exited"), (cancels, "SelfCancelled")]
"""How code leaves, and what its failure is called."""


def look() -> str:
    """Harmless."""
    return "seen"


def leaving(leaves: Leaves, place: str, *turns: Turn) -> DurableAgent:
    """An agent that leaves at one place, if it is one of `ENDS`."""

    def plain() -> str:
        """A tool in a thread."""
        return leaves()

    async def later() -> str:
        """A tool on the worker's event loop."""
        return leaves()

    def final(text: str) -> str:
        """The output."""
        return leaves() if text == "leave" else text

    check = leaves if place == "args validator" else None
    agent = Agent(
        Script(leaves if place == "model" else turns[0], *turns[1:]).model,
        name="leaving",
        tools=[plain, later, Tool(look, args_validator=check)],
        output_type=[str, ToolOutput(final, name="final")],
        instructions=leaves if place == "instructions" else None,
        capabilities=[Hooks(before_model_request=leaves)] if place == "hook" else [],
    )
    if place == "output validator":
        agent.output_validator(leaves)
    policies = {"look": ToolPolicy(approval=Approval(when=leaves))} if place == "predicate" else {}
    deps = leaves if place == "deps" else None
    return DurableAgent(agent, deps=deps, policies=policies, model_attempts=1)


@pytest.mark.parametrize("tools", [["plain"], ["later"], ["plain", "look", "later"]], ids="+".join)
@pytest.mark.parametrize(("leaves", "name"), WAYS, ids=["exits", "cancels"])
async def test_a_tool_that_leaves_has_failed(
    client: Client, cache: int, tools: list[str], leaves: Leaves, name: str
) -> None:
    turns: list[Turn] = [[ToolCallPart(tool, {}) for tool in tools], "done"]
    async with working(client, App(agents=[leaving(leaves, "tool", *turns)]), cache=cache) as runs:
        run = await runs.start("leaving", "go")
        assert (await run.result())["output"] == "done"
        answers = {part.tool_name: part.content for part in returns(await messages(run))}
    assert answers == {tool: "seen" if tool == "look" else f"The tool failed with {name}." for tool in tools}


@pytest.mark.parametrize("place", ENDS)
@pytest.mark.parametrize(("leaves", "name"), WAYS, ids=["exits", "cancels"])
async def test_elsewhere_it_ends_the_run(client: Client, place: str, leaves: Leaves, name: str) -> None:
    turn: Turn = {"final": {"text": "leave"}} if place == "output function" else "done"
    turn = {"look": {}} if place == "args validator" else turn
    async with working(client, App(agents=[leaving(leaves, place, turn, "done")])) as runs:
        failure = await runs.failure("leaving", "go")
    assert failure.type == name


@pytest.mark.parametrize("leaves", [exits, cancels])
async def test_a_predicate_that_leaves_gates_the_call(client: Client, leaves: Leaves) -> None:
    async with working(client, App(agents=[leaving(leaves, "predicate", {"look": {}}, "done")])) as runs:
        run = await runs.start("leaving", "go")
        assert [row["tool"] for row in await pending(run, 1)] == ["look"]
        await run.cancel()


@pytest.mark.parametrize("command", ["check", "tools", "worker"])
async def test_a_module_that_leaves_is_no_app(tmp_path: Path, command: str) -> None:
    (tmp_path / "module.py").write_text("import sys\n\nsys.exit(0)\n")
    done = await perdure(command, "module:app", cwd=tmp_path)
    assert done.code == 2, done
    assert "the module 'module' called sys.exit(0) while it was imported" in done.err
