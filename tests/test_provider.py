"""The real OpenAI adapter against a real HTTP server, through the durable path: who retries, and how often."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.fallback import FallbackModel
from temporalio.client import Client

from tests.harness import Runs, attempts, failure_of, messages, working
from tests.provider import shop
from tests.simulator import Simulator, broken_args, call, calls, cut_stream, hang, http_error, text


@pytest.mark.parametrize("fault", [http_error(429, retry_after=1), http_error(500), cut_stream(2, text("It was …"))])
async def test_temporal_alone_repeats_a_request(client: Client, fault: Any) -> None:
    ran: list[int] = []
    with Simulator([calls(call("lookup", {"id": 7})), fault, text("It was sent.")]) as simulator:
        # the client is told to retry twice: perdure switches that off, else there would be more requests
        async with working(client, shop(simulator.model(retries=2), ran)) as runs:
            handle = await runs.start("shop", "Where is 7?")
            assert (await handle.result())["output"] == "It was sent."
            assert await attempts(handle) == [1, 1, 2]
    assert len(simulator.requests) == 3
    assert ran == [7]


async def test_retry_after_is_the_delay_of_the_next_attempt(client: Client) -> None:
    with Simulator([http_error(429, retry_after=2), text("Now.")]) as simulator:
        async with working(client, shop(simulator.model(retries=2))) as runs:
            assert (await runs.run("shop", "Where?"))["output"] == "Now."
    first, second = simulator.requests
    assert second.time - first.time >= 2.0, "the default first delay is 1 s"


async def test_retry_after_of_a_fallback_group_is_honoured(client: Client) -> None:
    one = [http_error(429, retry_after=2), text("Now.")]
    with Simulator(one) as first, Simulator([http_error(429, retry_after=30)]) as second:
        model = FallbackModel(first.model(retries=0), second.model(retries=0))
        async with working(client, shop(model)) as runs:
            assert (await runs.run("shop", "Where?"))["output"] == "Now."
        assert first.requests[1].time - first.requests[0].time >= 2.0
        assert len(second.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "ModelRequestRejectedError"), (401, "ModelAuthenticationError"), (404, "ModelNotFoundError")],
)
async def test_a_permanent_error_ends_the_run_at_once(client: Client, status: int, kind: str) -> None:
    with Simulator([http_error(status)]) as simulator:
        async with working(client, shop(simulator.model(retries=2))) as runs:
            handle = await runs.start("shop", "Where?")
            failure = await failure_of(handle)
            assert failure.type == kind
            assert str(status) in failure.message
    assert len(simulator.requests) == 1


async def test_retries_are_finite(client: Client) -> None:
    with Simulator([http_error(500)] * 9) as simulator:
        async with working(client, shop(simulator.model(retries=3), model_attempts=2)) as runs:
            failure = await runs.failure("shop", "Where?")
            assert "500" in failure.message
    assert len(simulator.requests) == 2, "two attempts of Temporal, none of the client"


async def test_a_hanging_provider_is_given_up_and_asked_again(client: Client) -> None:
    with Simulator([hang(60, text("late")), text("in time")]) as simulator:
        async with working(client, shop(simulator.model(retries=0, timeout=5))) as runs:
            failure_or_answer = await _answer(runs)
    assert failure_or_answer == "in time"
    assert len(simulator.requests) == 2


async def _answer(runs: Runs) -> Any:
    return (await runs.run("shop", "Where?"))["output"]


async def test_broken_args_are_mended_by_the_model_and_stay_valid_for_the_provider(client: Client) -> None:
    ran: list[int] = []
    turns = [broken_args('{"id": 7', name="lookup"), calls(call("lookup", {"id": 7})), text("It was sent.")]
    with Simulator(turns) as simulator:
        async with working(client, shop(simulator.model(), ran)) as runs:
            handle = await runs.start("shop", "Where is 7?")
            assert (await handle.result())["output"] == "It was sent."
            sent = [
                part.args
                for message in await messages(handle)
                if isinstance(message, ModelResponse)
                for part in message.parts
                if isinstance(part, ToolCallPart)
            ]
            assert sent[0] == '{"id": 7', "the raw text is kept"
    assert ran == [7]
    assert len(simulator.requests) == 3, "the simulator refuses a request that OpenAI would refuse"


async def test_duplicate_ids_are_made_unique_before_they_are_sent_back(client: Client) -> None:
    ran: list[int] = []
    double = calls(call("lookup", {"id": 1}, id="same"), call("lookup", {"id": 2}, id="same"))
    again = calls(call("lookup", {"id": 3}, id="same"))
    with Simulator([double, again, text("All were sent.")]) as simulator:
        async with working(client, shop(simulator.model(), ran)) as runs:
            handle = await runs.start("shop", "Where are 1, 2 and 3?")
            assert (await handle.result())["output"] == "All were sent."
            ids = [
                part.tool_call_id
                for message in await messages(handle)
                if isinstance(message, ModelResponse)
                for part in message.parts
                if isinstance(part, ToolCallPart)
            ]
    assert sorted(ran) == [1, 2, 3]
    assert len(set(ids)) == 3
    assert ids[0] == "same"
