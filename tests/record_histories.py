"""Record `tests/histories/`: one run of each kind, on a real server. `make histories`.

Adding a scenario adds a file, and each file is a test of replay. Once a version is released, a changed workflow keeps
replaying what is there; before 0.1 the files may be recorded anew, saying so in the changelog.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel
from pydantic_ai import Agent, CallDeferred, FunctionToolset, ModelRetry
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponsePart, ToolCallPart
from temporalio.client import WorkflowFailureError, WorkflowHistory
from temporalio.testing import WorkflowEnvironment

from perdure import (
    App,
    Approval,
    DurableAgent,
    ExternalCall,
    Limits,
    Notification,
    Principal,
    TokenUse,
    ToolPolicy,
)
from perdure.contracts import VerbName, args_digest
from perdure.converter import data_converter
from perdure.tokens import make_token
from tests import compacting
from tests.compacting import Summarizer, counting
from tests.conftest import server_arguments, temporal_binary
from tests.harness import Handle, Runs, activities, until, working
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


def decided_app() -> App:
    """An app in which everything about decisions happens: a verifier, a notifier, a dispatcher."""

    async def verifier(token: str, use: TokenUse) -> Principal:
        return Principal(name=claims_of(token)["sub"], groups=["finance"])

    async def notifier(notification: Notification) -> None: ...

    async def dispatch(call: ExternalCall) -> None: ...

    made = FunctionToolset[None](id="decided")

    @made.tool_plain
    async def pay(n: int) -> str:
        """Pay."""
        return f"paid {n}"

    @made.tool_plain
    async def order(n: int) -> str:
        """Ordered elsewhere."""
        raise CallDeferred

    steps: list[list[ModelResponsePart]] = [
        [ToolCallPart("pay", {"n": 1}), ToolCallPart("pay", {"n": 2}), ToolCallPart("order", {"n": 3})],
        [ToolCallPart("pay", {"n": 4}), ToolCallPart("order", {"n": 5})],
    ]
    last = Approval(expires_after=timedelta(seconds=0.2))
    first = Approval(
        approvers=["group:finance"],
        quorum=2,
        allow_edit=True,
        expires_after=timedelta(seconds=3),
        reminders=[timedelta(seconds=0.1)],
        on_expiry="escalate",
        escalate_to=last,
    )
    policies = {
        "pay": ToolPolicy(approval=first),
        "order": ToolPolicy(dispatch=dispatch, wait=0.5, result=dict[str, int]),
    }
    make: Any = Agent
    agent = make(Script(*steps, "done").model, name="decided", toolsets=[made])
    return App(agents=[DurableAgent(agent, policies=policies)], verifier=verifier, notifier=notifier)


def compacted_app() -> App:
    """A run that is compacted, of which the second compaction fails."""
    return compacting.app(counting(8), Summarizer(None, ModelHTTPError(401, "short", "no key")))


def claims_of(token: str) -> dict[str, Any]:
    """What a token says; nobody is deceived here."""
    body = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


async def decided(runs: Runs) -> Handle:
    """A run with votes, an edit, a denial, a result, refusals, reminders, an escalation and expiries."""
    handle = await runs.start("decided", "go")

    async def rows(*tools: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []

        async def there() -> bool:
            found[:] = await handle.query("pending")
            return [row["tool"] for row in found] == list(tools)

        await until(there)
        return found

    def token(name: str, row: dict[str, Any], verb: VerbName, about: Any = None) -> str:
        digest = row["digest"] if about is None else args_digest(about)
        key = {"kty": "oct", "k": base64.urlsafe_b64encode(b"k" * 32).decode(), "kid": name, "alg": "HS256"}
        return make_token(key, workflow_id=handle.id, call=row["call"], decision=verb, digest=digest)

    async def send(verb: VerbName, name: str, row: dict[str, Any], about: Any = None, **fields: Any) -> Any:
        sent = {"call": row["call"], "token": token(name, row, verb, about), **fields}
        return await cast("Any", handle).execute_update(verb, sent)

    one, two, ordered = await rows("pay", "pay", "order")
    await send("complete", "shop", ordered, {"result": {"x": 1}}, result={"x": 1})
    edited = await send("approve", "ann", one, {"n": 10}, args={"n": 10})
    await send("approve", "bob", {**one, "call": edited["call"]}, {"n": 10})
    await handle.signal("deny", {"call": two["call"], "token": token("bob", two, "deny"), "reason": "no"})
    await handle.signal("approve", {"call": two["call"], "token": token("ann", two, "approve")})
    await handle.result()
    return handle


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
