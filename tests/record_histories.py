"""Record `tests/histories/`: one run of each kind, on a real server. `make histories`.

Adding a scenario adds a file, and each file is a test of replay. Once a version is released, a changed workflow keeps
replaying what is there; before 0.1 the files may be recorded anew, saying so in the changelog.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset, ModelRetry
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ToolCallPart
from temporalio.client import WorkflowFailureError, WorkflowHistory
from temporalio.testing import WorkflowEnvironment

from perdure import (
    App,
    DurableAgent,
    Limits,
    ToolPolicy,
)
from perdure.converter import data_converter
from tests import compacting
from tests.compacting import Summarizer, counting
from tests.conftest import server_arguments, temporal_binary
from tests.harness import Handle, Runs, activities, until, working
from tests.recorded_decisions import decided, decided_app
from tests.recorded_limits import limits_and_models, limits_app
from tests.scripts import Script

FOLDER = Path(__file__).parent / "histories"


class Answer(BaseModel):
    text: str


def tools() -> FunctionToolset[None]:
    """One tool of each kind."""
    made = FunctionToolset[None](id="tools")

    @made.tool_plain
    async def look(n: int) -> str:
        """Look something up."""
        if n < 0:
            raise ModelRetry("n must be at least 0")
        return f"found {n}"

    @made.tool_plain(sequential=True)
    async def write(n: int) -> str:
        """Write something down."""
        return f"wrote {n}"

    @made.tool_plain
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return "never"

    return made


def app() -> App:
    """One agent for each scenario, named after it."""
    final = ToolCallPart("final_result", {"text": "done"}, tool_call_id="final")
    scripts: dict[str, Script] = {
        "tool_then_text": Script({"look": {"n": 1}}, "done"),
        "parallel_and_barrier": Script(
            [ToolCallPart("look", {"n": 1}), ToolCallPart("write", {"n": 2}), ToolCallPart("look", {"n": 3})], "done"
        ),
        "bad_args_and_unknown_tool": Script(
            [ToolCallPart("look", "{"), ToolCallPart("nothing", {})], {"look": {"n": -1}}, {"look": {"n": 1}}, "done"
        ),
        "limit": Script(*[{"look": {"n": 1}}] * 9),
        "cancelled": Script({"wait": {}}),
        "deadline": Script({"wait": {}}),
    }
    agents = [
        DurableAgent(
            Agent(script.model, name=name, toolsets=[tools()], retries=2),
            policies={"look": ToolPolicy(effect="safe")},
            limits=Limits(requests=4),
        )
        for name, script in scripts.items()
    ]
    beside = Script([ToolCallPart("look", {"n": 1}), final])
    agents.append(DurableAgent(Agent(beside.model, name="output_beside_calls", toolsets=[tools()], output_type=Answer)))
    return App(agents=agents)


def compacted_app() -> App:
    """A run that is compacted, of which the second compaction fails."""
    return compacting.app(counting(8), Summarizer(None, ModelHTTPError(401, "short", "no key")))


async def finish(runs: Runs, agent: str) -> Handle:
    """A run to its end, whichever that is."""
    deadline = {"deadline": "PT1S"} if agent == "deadline" else {}
    handle = await runs.start(agent, "go", limits=deadline)
    if agent == "cancelled":
        await until(lambda: _waits(handle))
        await handle.cancel()
    try:
        await handle.result()
    except WorkflowFailureError as error:
        print(f"{agent}: {error.cause!r}", file=sys.stderr)
    return handle


def without_traces(value: Any) -> Any:
    """A history without stack traces: they name paths of the machine that recorded it."""
    if isinstance(value, dict):
        rows = cast("dict[str, Any]", value)
        return {name: without_traces(inner) for name, inner in rows.items() if name != "stackTrace"}
    return [without_traces(inner) for inner in cast("list[Any]", value)] if isinstance(value, list) else value


async def _waits(handle: Handle) -> bool:
    return "tool:wait" in await activities(handle)


async def unknown(runs: Runs) -> Handle:
    """A run of an agent that isn't there."""
    return await finish(runs, "nobody")


async def record() -> None:
    """Run every scenario and write its history."""
    FOLDER.mkdir(exist_ok=True)
    serve = WorkflowEnvironment.start_local(  # pyright: ignore[reportUnknownMemberType]
        data_converter=data_converter(),
        dev_server_existing_path=temporal_binary(),
        dev_server_extra_args=server_arguments(),
        dev_server_log_level="error",
    )
    async with await serve as environment:
        async with working(environment.client, app()) as runs:
            scenarios: dict[str, Callable[[], Awaitable[Handle]]] = {"unknown_agent": lambda: unknown(runs)}
            for name in app().agents:
                scenarios[name] = lambda name=name: finish(runs, name)
            for name, scenario in scenarios.items():
                await write(name, await scenario())
        async with working(environment.client, decided_app()) as runs:
            await write("decided", await decided(runs))
        async with working(environment.client, limits_app()) as runs:
            await write("limits_and_models", await limits_and_models(runs))
        async with working(environment.client, compacted_app()) as runs:
            await write("compacted", await finish(runs, "shop"))


async def write(name: str, handle: Handle) -> None:
    """Write the history of a run."""
    write_history(name, await handle.fetch_history())


def write_history(name: str, history: WorkflowHistory) -> None:
    """Write a history to its file."""
    (FOLDER / f"{name}.json").write_text(json.dumps(without_traces(json.loads(history.to_json())), indent=2))
    print(f"{name}: {len(history.events)} events", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(record())
