"""The equality table: the same script run by `agent.run` and by perdure gives the same (design §11).

Equal are the messages, the output, the usage, what the model saw in each request, and what tools and hooks saw. Where
equality can't hold by design the case says so itself, with `differs`.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from pydantic import TypeAdapter
from pydantic_ai import capture_run_messages
from pydantic_ai.messages import ModelMessage, ModelResponse, UserContent
from pydantic_ai.usage import RunUsage
from pydantic_core import to_jsonable_python
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from perdure import App, DurableAgent
from perdure.errors import DeclarationError
from tests.equality_cases import CASES, Case, Ran
from tests.equality_cases.plain import difference, plain, plain_messages
from tests.harness import Handle, Runs, check_run, messages, working

CACHE: dict[Any, str] = {0: "cache0", 1000: "cached"}
CONTENT = TypeAdapter(list[UserContent])


@dataclasses.dataclass
class Served:
    """All cases on one worker: each agent by the name of its case."""

    runs: Runs
    cases: dict[str, Case]
    refused: dict[str, DeclarationError]


EVERY = 1 if os.environ.get("PERDURE_EQUALITY") == "all" else 5
"""Of which so many cases one also runs on a worker without a cache, where every workflow task replays. Every run is
replayed at its end; `PERDURE_EQUALITY=all make test` runs all cases both ways."""
ROWS = [(1000, name) for name in CASES] + [(0, name) for name in list(CASES)[::EVERY]]


@pytest.fixture(scope="module")
async def served(client: Client, request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    """A worker for every case, freshly built. A case whose declaration is refused fails in its own test."""
    cases = {name: named(build(), name) for name, build in CASES.items()}
    refused: dict[str, DeclarationError] = {}
    agents: list[DurableAgent] = []
    for name, case in cases.items():
        agent = DurableAgent(case.agent, **case.durable)
        try:
            App(agents=[agent])
        except DeclarationError as error:
            refused[name] = error
        else:
            agents.append(agent)
    async with working(client, App(agents=agents), cache=request.param, check=False) as runs:
        yield Served(runs, cases, refused)


@pytest.mark.parametrize(("served", "name"), ROWS, indirect=["served"], ids=lambda value: CACHE.get(value, value))
async def test_perdure_runs_it_like_agent_run(name: str, served: Served) -> None:
    if name in served.refused:
        raise served.refused[name]
    case = served.cases[name]
    plainly = await in_process(named(CASES[name](), name))
    durably = await on_temporal(case, served.runs)
    if case.differs is None:
        assert_equal(plainly, durably)
    else:
        case.differs(plainly, durably)


@pytest.mark.parametrize("served", [0, 1000], indirect=True, ids=CACHE.get)
async def test_two_runs_of_an_agent_at_once_do_not_share_anything(served: Served) -> None:
    name = "s0_08_model_retry_then_success_counts_attempts"
    plainly = await in_process(named(CASES[name](), name))
    handles = [await served.runs.start(name, "go") for _ in range(2)]
    for handle in handles:
        assert (await handle.result())["output"] == plainly.output
        assert plain_messages(await messages(handle)) == plainly.messages
        await check_run(handle)


def named(case: Case, name: str) -> Case:
    """The case with its agent under its own name."""
    case.agent.name = name
    return case


def assert_equal(plainly: Ran, durably: Ran) -> None:
    """Piece by piece, so that the first difference is the one that is shown."""
    assert durably.error == plainly.error
    for name in ("requests", "messages", "saw", "output", "usage"):
        lines = difference(getattr(durably, name), getattr(plainly, name), name)
        assert not lines, "perdure and agent.run differ:\n" + "\n".join(lines)
    assert durably.output_type in (None, plainly.output_type)


async def in_process(case: Case) -> Ran:
    """The case as `agent.run` runs it."""
    usage = RunUsage()
    output, error = None, None
    with capture_run_messages() as captured:
        try:
            result = await case.agent.run(case.prompt, deps=case.deps, model=case.model(), usage=usage)
            output = result.output
        except Exception as raised:
            error = type(raised).__name__, timeless(str(raised))
    return Ran(
        saw=plain(case.saw),
        requests=[request for script in case.scripts for request in script.seen],
        messages=plain_messages(up_to_the_end(captured, failed=error is not None)),
        usage=used(dataclasses.asdict(usage)),
        output=to_jsonable_python(output, bytes_mode="base64", inf_nan_mode="strings"),
        output_type=None if output is None else type(output).__name__,
        error=error,
    )


async def on_temporal(case: Case, runs: Runs) -> Ran:
    """The case as perdure runs it."""
    prompt = case.prompt if isinstance(case.prompt, str) else CONTENT.dump_python(case.prompt, mode="json")
    handle = await runs.start(case.agent.name or "", prompt, **case.request)
    result, error = await ended(handle)
    status: Any = await handle.query("status")
    spoken = await messages(handle)
    await check_run(handle)
    assert "usage" not in result or result["usage"] == status["usage"]
    return Ran(
        saw=plain(case.saw),
        requests=[request for script in case.scripts for request in script.seen],
        messages=plain_messages(up_to_the_end(spoken, failed=error is not None)),
        usage=used(status["usage"]),
        output=result.get("output"),
        output_type=result.get("output_type"),
        error=error,
    )


async def ended(handle: Handle) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """The result of a run, or type and message of its failure."""
    try:
        return await handle.result(), None
    except WorkflowFailureError as failure:
        cause = failure.cause
    if not isinstance(cause, ApplicationError):
        raise AssertionError(f"the run ended with {cause!r}")
    return {}, (cause.type or "", timeless(cause.message))


def timeless(message: str) -> str:
    """A message without what two runs differ in: some hold a whole response."""
    return re.sub(r'"(timestamp|run_id|conversation_id)": "[^"]*"', r'"\1": "…"', message)


def up_to_the_end(conversation: list[ModelMessage], *, failed: bool) -> list[ModelMessage]:
    """The messages; of a failed run only those up to the last response, as its calls are answered differently."""
    kept = list(conversation)
    while failed and kept and not isinstance(kept[-1], ModelResponse):
        kept.pop()
    return kept


def used(usage: Mapping[str, Any]) -> dict[str, Any]:
    """The counters that aren't zero."""
    flat = {**usage, **usage.get("more", {})}
    return {name: value for name, value in flat.items() if value and name not in ("more", "unpriced_requests")}
