"""The equality table: the same script run by `agent.run` and by perdure gives the same (design §11).

Equal are the messages, the output, the usage, what the model saw in each request, and what tools and hooks saw. Where
equality can't hold by design the case says so itself, with `differs`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic_ai import capture_run_messages
from pydantic_ai.messages import ModelMessage, ModelResponse, UserContent
from pydantic_ai.usage import RunUsage
from pydantic_core import to_jsonable_python
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from perdure import App, DurableAgent
from tests.equality_cases import CASES, Case, Ran
from tests.equality_cases.plain import difference, plain, plain_messages
from tests.harness import Handle, messages, working


@pytest.mark.parametrize("build", list(CASES.values()), ids=list(CASES))
async def test_perdure_runs_it_like_agent_run(build: Callable[[], Case], client: Client, cache: int) -> None:
    case = build()
    plainly = await in_process(build())
    durably = await on_temporal(case, client, cache)
    if case.differs is None:
        assert_equal(plainly, durably)
    else:
        case.differs(plainly, durably)


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
            error = type(raised).__name__, str(raised)
    return Ran(
        saw=plain(case.saw),
        requests=[request for script in case.scripts for request in script.seen],
        messages=plain_messages(up_to_the_end(captured, failed=error is not None)),
        usage=used(dataclasses.asdict(usage)),
        output=to_jsonable_python(output, bytes_mode="base64", inf_nan_mode="strings"),
        output_type=None if output is None else type(output).__name__,
        error=error,
    )


async def on_temporal(case: Case, client: Client, cache: int) -> Ran:
    """The case as perdure runs it."""
    app = App(agents=[DurableAgent(case.agent, **case.durable)])
    prompt = to_jsonable_python(case.prompt) if isinstance(case.prompt, str) else content_json(case.prompt)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("agent", prompt, **case.request)
        result, error = await ended(handle)
        status: Any = await handle.query("status")
        spoken = await messages(handle)
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
        assert isinstance(failure.cause, ApplicationError), failure.cause
        return {}, (failure.cause.type or "", failure.cause.message)


def content_json(prompt: Any) -> Any:
    """Content parts as the JSON a start carries."""
    from pydantic import TypeAdapter

    return TypeAdapter(list[UserContent]).dump_python(prompt, mode="json")


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
