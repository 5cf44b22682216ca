"""Faults that the simulator makes, as Pydantic AI's own OpenAI adapter sees them."""

from __future__ import annotations

import json

import pytest
from pydantic_ai.exceptions import (
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelTimeoutError,
)
from pydantic_ai.messages import ModelResponse, ToolCallPart

from tests.simulated import both_ways, returns, run
from tests.simulator import (
    HttpError,
    Simulator,
    broken_args,
    call,
    calls,
    cut_stream,
    hang,
    http_error,
    text,
)


@both_ways
async def test_broken_args_are_sent_as_they_are(streaming: bool) -> None:
    with Simulator([broken_args('{"x": 2'), calls(call("double", {"x": 2})), text("done")]) as simulator:
        result = await run(simulator.model(), streaming)
    assert [outcome for outcome, _ in returns(result)] == ["retried", "success"]
    response = next(message for message in result.all_messages() if isinstance(message, ModelResponse))
    assert [part.args for part in response.parts if isinstance(part, ToolCallPart)] == ['{"x": 2']
    sent_back = simulator.requests[1].body["messages"][1]["tool_calls"][0]["function"]
    assert json.loads(sent_back["arguments"]) == {"INVALID_JSON": '{"x": 2'}


@both_ways
async def test_an_http_error_is_raised_with_its_body(streaming: bool) -> None:
    body = {"error": {"message": "no such model", "code": "model_not_found", "type": "invalid_request_error"}}
    with Simulator([http_error(404, body=body)]) as simulator:
        with pytest.raises(ModelHTTPError, match="no such model") as caught:
            await run(simulator.model(), streaming)
    assert caught.value.status_code == 404
    assert caught.value.body == body["error"]


@both_ways
async def test_a_rate_limit_says_when_to_come_back(streaming: bool) -> None:
    with Simulator([http_error(429, retry_after=7)]) as simulator:
        with pytest.raises(ModelRateLimitError) as caught:
            await run(simulator.model(), streaming)
    assert caught.value.retry_after == 7


@both_ways
@pytest.mark.parametrize("fault", [http_error(503, retry_after=0.01), http_error(429, retry_after=0.01)])
async def test_the_client_retries_as_told(streaming: bool, fault: HttpError) -> None:
    with Simulator([fault, fault, text("at last")]) as simulator:
        result = await run(simulator.model(retries=2), streaming)
    assert result.output == "at last"
    assert len(simulator.requests) == 3
    assert [each.headers["x-stainless-retry-count"] for each in simulator.requests] == ["0", "1", "2"]


@both_ways
async def test_a_hang_meets_the_timeout_of_the_client(streaming: bool) -> None:
    with Simulator([hang(60)]) as simulator:
        with pytest.raises(ModelTimeoutError):
            await run(simulator.model(timeout=3), streaming)
    assert simulator.turns_left == 0


@both_ways
async def test_a_hang_that_ends_in_time_is_only_slow(streaming: bool) -> None:
    with Simulator([hang(0.05, then=text("slow"))]) as simulator:
        result = await run(simulator.model(), streaming)
    assert result.output == "slow"


@pytest.mark.parametrize("after", [0, 1, 3])
async def test_a_cut_stream_is_a_connection_error(after: int) -> None:
    with Simulator([cut_stream(after)]) as simulator:
        with pytest.raises(ModelConnectionError):
            await run(simulator.model(), streaming=True)


async def test_a_cut_body_is_a_connection_error() -> None:
    with Simulator([cut_stream(after=3)]) as simulator:
        with pytest.raises(ModelConnectionError):
            await run(simulator.model(), streaming=False)


async def test_a_stream_cut_within_arguments_runs_no_tool() -> None:
    with Simulator([cut_stream(3, calls(call("double", {"x": 123456789})))]) as simulator:
        with pytest.raises(ModelConnectionError):
            await run(simulator.model(), streaming=True)
    assert len(simulator.requests) == 1


async def test_a_clean_cut_passes_for_a_whole_answer() -> None:
    """Pydantic AI takes a stream without a finish reason for complete."""
    with Simulator([cut_stream(3, text("one two three four five"), clean=True)]) as simulator:
        result = await run(simulator.model(), streaming=True)
    assert result.output == "one two three fo"
