"""Setup and faults of smolagents' tools, by the real library."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponsePart, ToolCallPart
from smolagents.tools import tool  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client

from perdure import App, ToolPolicy, current_call
from perdure.toolsets.smolagents import SmolagentsToolset
from tests.deciding import answers
from tests.foreign import ANN, RAN
from tests.harness import activities, until, working
from tests.reading import everything
from tests.scripts import Script
from tests.smolagents_tools import Lookup, an_app

pytestmark = pytest.mark.usefixtures("nothing_ran")


class Held(Lookup):
    """Its `setup()` goes on when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def setup(self) -> None:
        RAN.append("setup")
        assert self.go.wait(45)


async def test_s3_08_setup_runs_once_for_twenty_calls_at_a_time(client: Client, cache: int) -> None:
    calls: list[ModelResponsePart] = [ToolCallPart("lookup", {"key": str(n)}) for n in range(20)]
    held = Held()

    async def all_have_begun() -> bool:
        open_ones = (await handle.describe()).raw_description.pending_activities
        return sum(one.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED for one in open_ones) == 20

    app = an_app(Script(calls, "done"), held, lookup=ToolPolicy(effect="safe"))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        await until(all_have_begun)
        held.go.set()
        await handle.result()
        found = await answers(handle)
    assert RAN[0] == "setup"
    assert sorted(RAN[1:], key=int) == [str(n) for n in range(20)]
    assert {outcome for outcome, _ in found.values()} == {"success"}


async def test_s3_08_setup_runs_once_also_for_a_tool_of_two_agents(client: Client) -> None:
    shared = Lookup()
    scripts = [Script({"lookup": {"key": str(n)}}, "done") for n in range(2)]
    agents = [
        Agent(script.model, name=f"clerk{n}", toolsets=[SmolagentsToolset([shared], id="smol")])
        for n, script in enumerate(scripts)
    ]
    async with working(client, App(agents=agents)) as runs:
        handles = [await runs.start(agent.name or "", "go") for agent in agents]
        for handle in handles:
            await handle.result()
    assert sorted(RAN) == ["0", "1", "setup"]


async def test_s3_08_a_setup_that_failed_runs_again(client: Client) -> None:
    """By Temporal where the tool may be repeated, by the next call where it mayn't."""
    once = an_app(Script({"lookup": {"key": "a"}}, {"lookup": {"key": "b"}}, "done"), Lookup(faults=1))
    async with working(client, once) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        await handle.result()
        found = list((await answers(handle)).values())
    assert found[0] == ("failed", "The tool was not run: its setup failed with OSError.")
    assert found[1][0] == "success"
    assert RAN == ["setup", "setup", "b"]
    RAN.clear()
    policy = ToolPolicy(effect="safe", backoff=0.01)
    twice = an_app(Script({"lookup": {"key": "c"}}, "done"), Lookup(faults=2), lookup=policy)
    async with working(client, twice) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        await handle.result()
        assert (await activities(handle)).count("tool:lookup") == 1
    assert RAN == ["setup", "setup", "setup", "c"]


@tool
def leaks(key: str) -> str:
    """Fails.

    Args:
        key: A key.
    """
    RAN.append(current_call().attempt)
    raise ValueError("password hunter2")


@pytest.mark.parametrize(("effect", "attempts"), [("unsafe", None), ("safe", 3)])
async def test_s2_25_the_text_of_an_exception_is_not_told(
    client: Client, cache: int, effect: Any, attempts: int | None
) -> None:
    policy = ToolPolicy(effect=effect, attempts=attempts, backoff=0.01)
    script = Script({"leaks": {"key": "a"}}, "done")
    async with working(client, an_app(script, leaks, leaks=policy), cache=cache) as runs:
        handle = await runs.start("clerk", "go", params=ANN)
        await handle.result()
        assert await answers(handle) == {"c0.0": ("failed", "The tool failed with ValueError.")}
        assert "hunter2" not in await everything(handle)
    assert list(range(1, (attempts or 1) + 1)) == RAN
