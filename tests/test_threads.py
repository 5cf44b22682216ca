"""Threads of a worker: calls that hang take none from others, and a call that has to wait for one isn't told as run."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from agents import function_tool
from langchain_core.tools import StructuredTool
from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy
from perdure.context import call_or_none
from perdure.payloads.files import FileStore
from perdure.threads import LEFT_BEHIND, Threads, give_threads
from perdure.toolsets.langchain import LangChainToolset
from perdure.toolsets.openai_agents import OpenAIAgentsToolset
from tests.deciding import answers
from tests.harness import working
from tests.scripts import Script

PYTHONS = min(32, (os.cpu_count() or 1) + 4)
"""Threads of the executor that Python gives a loop."""
OF_ANYIO = 40
"""Threads that anyio lets run."""
KINDS = ["plain", "to_thread", "sdk", "langchain"]


def functions(kind: str, *sync: Any) -> AbstractToolset[Any]:
    """Sync functions as tools, by the way in which they get into threads."""
    if kind == "sdk":
        return OpenAIAgentsToolset([function_tool(one) for one in sync], id="tools")
    if kind == "langchain":
        return LangChainToolset([StructuredTool.from_function(one) for one in sync], id="tools")
    if kind == "plain":
        return FunctionToolset(sync, id="tools")
    tools: FunctionToolset[Any] = FunctionToolset(id="tools")
    for one in sync:
        tools.add_function(_threaded(one), name=one.__name__)
    return tools


def _threaded(function: Any) -> Any:
    async def run(x: int) -> str:
        return await asyncio.to_thread(function, x)

    return run


def an_app(script: Script, tools: AbstractToolset[Any], tool: str = "*", **policy: Any) -> App:
    """One agent whose calls may all run at once, with a policy for a tool, or for all."""
    agent = Agent(script.model, name="a", toolsets=[tools])
    return App(agents=[DurableAgent(agent, policies={tool: ToolPolicy(**policy)}, max_parallel_calls=100)])


@pytest.mark.parametrize("kind", ["to_thread", "sdk"])
async def test_calls_that_hang_take_no_thread_from_other_runs(client: Client, cache: int, kind: str) -> None:
    release = threading.Event()

    def hang(x: int) -> str:
        """Hangs."""
        release.wait(60)
        return "late"

    def quick(x: int) -> str:
        """Answers."""
        return "quick"

    def turn(asked: Any, info: Any) -> Any:
        is_first = asked[0].parts[-1].content == "hang"
        return [ToolCallPart("hang" if is_first else "quick", {"x": x}) for x in range(PYTHONS if is_first else 1)]

    app = an_app(Script(turn, "done"), functions(kind, hang, quick), "hang", timeout=1, cancel_grace=0.1)
    try:
        async with working(client, app, cache=cache) as runs:
            await (await runs.start("a", "hang")).result()
            second = await runs.start("a", "go")
            await second.result()
            assert await answers(second) == {"c0.0": ("success", "quick")}
            await asyncio.wait_for(asyncio.get_running_loop().getaddrinfo("localhost", 80), 20)
    finally:
        release.set()


@pytest.mark.parametrize("kind", KINDS)
async def test_more_sync_calls_than_python_or_anyio_has_threads_run_at_once(
    client: Client, cache: int, kind: str
) -> None:
    count = OF_ANYIO + 5
    together = threading.Barrier(count)

    def meet(x: int) -> str:
        """Ends when all have begun."""
        together.wait(60)
        return "met"

    script = Script([ToolCallPart("meet", {"x": x}) for x in range(count)], "done")
    async with working(client, an_app(script, functions(kind, meet)), cache=cache) as runs:
        handle = await runs.start("a", "go")
        await handle.result()
        assert set((await answers(handle)).values()) == {("success", "met")}


def first_of(x: int) -> str:
    """The first of nothing."""
    return next(iter(()))


@pytest.mark.parametrize("kind", [*KINDS, "langchain async"])
async def test_stop_iteration_is_a_fault_like_others(client: Client, cache: int, kind: str) -> None:
    async def unused(x: int) -> str:
        """The first of nothing."""
        return await asyncio.to_thread(first_of, x)

    if kind == "langchain async":
        tool = StructuredTool.from_function(coroutine=unused, name="first_of")
        tools: AbstractToolset[Any] = LangChainToolset([tool], id="tools")
    else:
        tools = functions(kind, first_of)
    async with working(client, an_app(Script({"first_of": {"x": 1}}, "done"), tools), cache=cache) as runs:
        handle = await runs.start("a", "go")
        await asyncio.wait_for(handle.result(), 30)
        ((outcome, text),) = (await answers(handle)).values()
        assert outcome == "failed"
        assert text in (
            "The tool failed with RuntimeError.",
            "The tool failed with StopIteration.",
            "An error occurred while running the tool. Please try again.",
        )


class SlowList(WrapperToolset[Any]):
    """Tools whose list, in a call, never comes."""

    async def get_tools(self, ctx: RunContext[Any]) -> Any:
        if call_or_none() is not None:
            await asyncio.Event().wait()
        return await super().get_tools(ctx)


async def test_a_call_that_never_began_is_told_as_not_run(client: Client, cache: int) -> None:
    ran: list[int] = []
    tools = SlowList(functions("plain", ran.append))
    script = Script({"append": {"object": 1}}, "done")
    async with working(client, an_app(script, tools, timeout=0.3), cache=cache) as runs:
        handle = await runs.start("a", "go")
        await handle.result()
        told = "The call did not begin within 0.3 s. It was not run."
        assert (await answers(handle), ran) == ({"c0.0": ("failed", told)}, [])


def test_an_executor_that_the_program_has_set_is_left() -> None:
    async def main() -> None:
        loop, own = asyncio.get_running_loop(), ThreadPoolExecutor(1, thread_name_prefix="own")
        loop.set_default_executor(own)
        give_threads(5)
        assert (await asyncio.to_thread(threading.current_thread)).name.startswith("own")

    asyncio.run(main())


def test_the_loops_own_executor_is_replaced_and_grows_with_a_second_worker() -> None:
    async def main() -> None:
        assert (await asyncio.to_thread(threading.current_thread)).name.startswith("asyncio")
        loop = asyncio.get_running_loop()
        for calls, most in ((5, 5), (2, 5), (9, 9)):
            give_threads(calls)
            assert (await asyncio.to_thread(threading.current_thread)).name.startswith("perdure")
            executor: Any = vars(loop)["_default_executor"]
            assert isinstance(executor, Threads)
            assert executor.most == most + LEFT_BEHIND

    asyncio.run(main())


def test_payloads_are_kept_while_the_threads_of_the_loop_hang(tmp_path: Path) -> None:
    release = threading.Event()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        hangs = asyncio.create_task(asyncio.to_thread(release.wait, 60))
        try:
            store = FileStore(tmp_path)
            await asyncio.wait_for(store.put("results/abcd", b"bytes"), 20)
            assert await asyncio.wait_for(store.find("results/abcd"), 20) == b"bytes"
            assert not hangs.done()
        finally:
            release.set()
            await hangs

    asyncio.run(main())
