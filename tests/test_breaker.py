"""P-12: a tool that fails isn't called for a while, on the worker where it failed, and the model is told."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from temporalio.client import Client

from perdure import App, Breaker, DeclarationError, DurableAgent, ToolPolicy
from perdure.activities.breaker import Circuits
from perdure.activities.runtime import Runtime
from perdure.worker import worker
from tests.clocks import Clock
from tests.deciding import answers, cancelled, told
from tests.harness import Handle, Runs, activities, attempts, check_run, until
from tests.scripts import Script

GONE = "The tool 'fetch' is not available for now, since calls of it have failed: this one was not made."


@dataclass
class Shop:
    """An agent with one tool, which does what it is told next."""

    policy: ToolPolicy
    does: list[Any] = field(default_factory=list[Any])
    ran: int = 0
    clock: Clock = field(default_factory=Clock)
    turns: tuple[Any, ...] = ({"fetch": {}}, "done")

    async def fetch(self) -> str:
        """Ask a server."""
        self.ran += 1
        what = self.does.pop(0)
        if isinstance(what, asyncio.Event):
            await what.wait()
        if isinstance(what, Exception):
            raise what
        return "here"

    @asynccontextmanager
    async def open(self, client: Client, cache: int) -> AsyncGenerator[Runs]:
        """A worker whose breakers go by the clock of the shop."""
        agent = Agent(Script(*self.turns).model, name="shop", tools=[self.fetch])
        app = App(agents=[DurableAgent(agent, policies={"fetch": self.policy})])
        runs = Runs(client, f"q-{uuid.uuid4().hex[:12]}")
        async with Runtime(app, Circuits(self.clock)) as runtime:
            built = worker(
                client, runtime, task_queue=runs.task_queue, max_cached_workflows=cache, grace=timedelta(seconds=1)
            )
            async with built:
                yield runs
                for handle in runs.handles:
                    await check_run(handle)


async def test_p_12_opens_after_failures_in_a_row_and_closes_by_a_trial(client: Client, cache: int) -> None:
    shop = Shop(ToolPolicy(breaker=Breaker(failures=2, reset_after=60)))
    shop.does = [OSError(), "well", OSError(), OSError(), OSError(), "well", OSError()]
    failed = ("failed", "The tool failed with OSError.")
    async with shop.open(client, cache) as runs:
        assert [await told(runs, "shop") for _ in range(4)] == [failed, ("success", "here"), failed, failed]
        assert await told(runs, "shop") == ("failed", GONE)
        shop.clock.now += 59
        assert await told(runs, "shop") == ("failed", GONE)
        assert shop.ran == 4
        shop.clock.now += 1
        assert await told(runs, "shop") == failed, "the trial"
        assert await told(runs, "shop") == ("failed", GONE)
        shop.clock.now += 60
        assert await told(runs, "shop") == ("success", "here"), "the second trial closes it"
        assert await told(runs, "shop") == failed
    assert shop.ran == 7


async def test_p_12_a_call_that_is_repeated_ends_when_it_meets_an_open_breaker(client: Client, cache: int) -> None:
    """Its own failures open it: the third attempt is told to the model, and the fourth and fifth are never used."""
    policy = ToolPolicy(effect="idempotent", backoff=0.02, breaker=Breaker(failures=2, reset_after=60))
    shop = Shop(policy, [OSError(), OSError()])
    async with shop.open(client, cache) as runs:
        handle = await runs.start("shop", "go")
        assert (await handle.result())["output"] == "done"
        outcome, text = (await answers(handle))["c0.0"]
        assert (outcome, text) == (
            "failed",
            f"{GONE} An earlier attempt of this call failed, and may have had an effect.",
        )
        assert await attempts(handle) == [1, 3, 1]
        assert await told(runs, "shop") == ("failed", GONE)
    assert shop.ran == 2


async def test_p_12_only_one_trial_is_made_at_once(client: Client, cache: int) -> None:
    trial = asyncio.Event()
    shop = Shop(ToolPolicy(breaker=Breaker(failures=1, reset_after=60)), [OSError(), trial, "well"])
    async with shop.open(client, cache) as runs:
        await told(runs, "shop")
        shop.clock.now += 60
        handle = await runs.start("shop", "go")
        await until(lambda: shop.ran == 2)
        assert await told(runs, "shop") == ("failed", GONE)
        trial.set()
        assert (await handle.result())["output"] == "done"
        assert await told(runs, "shop") == ("success", "here")
    assert shop.ran == 3


async def test_p_12_a_timeout_is_a_failure_and_a_cancel_is_none(client: Client, cache: int) -> None:
    policy = ToolPolicy(effect="safe", attempts=1, timeout=5, breaker=Breaker(failures=1, reset_after=60))
    shop = Shop(policy, [asyncio.Event(), asyncio.Event(), "well"])
    async with shop.open(client, cache) as runs:
        handle = await runs.start("shop", "go")
        await until(lambda: shop.ran == 1)
        await cancelled(handle)
        outcome, text = await told(runs, "shop")
        assert (outcome, text) == ("failed", "The call did not end within 5 s.")
        assert await told(runs, "shop") == ("failed", GONE)
        shop.clock.now += 60
        assert await told(runs, "shop") == ("success", "here")
    assert shop.ran == 3


async def test_p_12_calls_of_one_step_are_refused_as_activities_that_answer(client: Client, cache: int) -> None:
    """Nothing of a breaker is in the workflow: a refused call is an activity like any other, and replays so."""
    calls: list[Any] = [ToolCallPart("fetch", {}), ToolCallPart("fetch", {})]
    shop = Shop(ToolPolicy(breaker=Breaker(failures=1)), [OSError()], turns=({"fetch": {}}, calls, "done"))
    async with shop.open(client, cache) as runs:
        handle: Handle = await runs.start("shop", "go")
        assert (await handle.result())["output"] == "done"
        assert [text for _, text in list((await answers(handle)).values())[1:]] == [GONE, GONE]
        assert (await activities(handle)).count("tool:fetch") == 3
    assert shop.ran == 1


async def test_p_12_the_timeout_of_pydantic_ai_is_a_failure(client: Client) -> None:
    """The real one, so that `health_of` is right about how it is raised."""
    tools: FunctionToolset[Any] = FunctionToolset(id="slow", timeout=0.01)

    @tools.tool_plain
    async def fetch() -> str:
        """Never ends."""
        await asyncio.Event().wait()
        return ""

    agent = Agent(Script({"fetch": {}}, {"fetch": {}}, "done").model, name="shop", toolsets=[tools], deps_type=Any)
    durable = DurableAgent(agent, policies={"fetch": ToolPolicy(breaker=Breaker(failures=1))}, deps=lambda *_: None)
    runs = Runs(client, f"q-{uuid.uuid4().hex[:12]}")
    async with Runtime(App(agents=[durable])) as runtime, worker(client, runtime, task_queue=runs.task_queue):
        handle = await runs.start("shop", "go")
        assert (await handle.result())["output"] == "done"
        found = await answers(handle)
    assert found["c0.0"][0] == "retried"
    assert found["c1.0"] == ("failed", GONE)


def test_a_breaker_that_is_none_is_refused() -> None:
    with pytest.raises(DeclarationError, match="failures=0 must be a whole number"):
        Breaker(failures=0)
    with pytest.raises(DeclarationError, match="reset_after=0 must be a finite time"):
        Breaker(reset_after=0)
    outside: ExternalToolset[Any] = ExternalToolset([ToolDefinition(name="sign")], id="outside")
    agent = Agent(Script("x").model, name="shop", toolsets=[outside], deps_type=Any)
    with pytest.raises(DeclarationError, match=r"\['sign'\] don't run on a worker of the agent"):
        App(agents=[DurableAgent(agent, policies={"*": ToolPolicy(breaker=Breaker())})])
