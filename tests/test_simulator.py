"""The simulator, driven by Pydantic AI's own OpenAI adapter."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.exceptions import (
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelTimeoutError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ModelResponse, PartDeltaEvent, ToolCallPart, ToolReturnPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.run import AgentRunResult

from tests.simulator import (
    HttpError,
    Simulator,
    Turn,
    broken_args,
    call,
    calls,
    cut_stream,
    hang,
    http_error,
    text,
)

both_ways = pytest.mark.parametrize("streaming", [False, True], ids=["plain", "streaming"])

tools = FunctionToolset(id="tools")


@tools.tool_plain
def double(x: int) -> int:
    return 2 * x


agent = Agent(toolsets=[tools])


async def run(model: OpenAIChatModel, streaming: bool) -> AgentRunResult[str]:
    if not streaming:
        return await agent.run("go", model=model)
    async with agent.run_stream_events("go", model=model) as events:
        async for _ in events:
            pass
    assert events.result is not None
    return events.result


def returns(result: AgentRunResult[str]) -> list[tuple[str, Any]]:
    parts = [part for message in result.all_messages() for part in message.parts]
    return [(part.outcome, part.content) for part in parts if isinstance(part, ToolReturnPart)]


@both_ways
async def test_text_is_answered(streaming: bool) -> None:
    with Simulator([text("Hello, this is the answer.", usage=(7, 3))]) as simulator:
        result = await run(simulator.model(), streaming)
    assert result.output == "Hello, this is the answer."
    assert (result.usage.input_tokens, result.usage.output_tokens) == (7, 3)
    assert result.response.finish_reason == "stop"
    assert result.response.provider_response_id == "chatcmpl-1"
    assert simulator.turns_left == 0


async def test_requests_are_recorded() -> None:
    with Simulator([text("a"), text("b")]) as simulator:
        model = simulator.model("gpt-4.1")
        await run(model, streaming=False)
        await run(model, streaming=True)
    first, second = simulator.requests
    assert first.body["messages"] == [{"role": "user", "content": "go"}]
    assert first.body["model"] == "gpt-4.1"
    assert first.headers["authorization"] == "Bearer test"
    assert [tool["function"]["name"] for tool in first.body["tools"]] == ["double"]
    assert (first.body.get("stream"), second.body.get("stream")) == (False, True)
    assert second.body["stream_options"] == {"include_usage": True}
    assert first.time < second.time


async def test_text_comes_in_pieces() -> None:
    with Simulator([text("one two three four five six")]) as simulator:
        async with agent.run_stream_events("go", model=simulator.model()) as events:
            deltas = [event async for event in events if isinstance(event, PartDeltaEvent)]
    assert len(deltas) == 3


@both_ways
async def test_calls_run_and_their_results_come_back(streaming: bool) -> None:
    script = [
        calls(call("double", {"x": 2}), call("double", '{"x": 21}', id="mine"), content="Doubling."),
        text("done"),
    ]
    with Simulator(script) as simulator:
        result = await run(simulator.model(), streaming)
    assert result.output == "done"
    assert returns(result) == [("success", 4), ("success", 42)]
    assistant, *answers = simulator.requests[1].body["messages"][1:]
    assert assistant["content"] == "Doubling."
    assert [each["id"] for each in assistant["tool_calls"]] == ["call_1_0", "mine"]
    assert [(each["tool_call_id"], each["content"]) for each in answers] == [("call_1_0", "4"), ("mine", "42")]


@both_ways
async def test_duplicate_ids_are_sent_as_they_are(streaming: bool) -> None:
    """Pydantic AI refuses them within one response, and takes an id it has seen in an earlier one."""
    twice = calls(call("double", {"x": 1}, id="same"), call("double", {"x": 2}, id="same"))
    with Simulator([calls(call("double", {"x": 1}, id="same")), twice]) as simulator:
        with pytest.raises(UnexpectedModelBehavior, match="duplicate `tool_call_id`s: \\['same'\\]"):
            await run(simulator.model(), streaming)
    assert simulator.turns_left == 0


@both_ways
async def test_an_empty_id_is_replaced_by_the_adapter(streaming: bool) -> None:
    with Simulator([calls(call("double", {"x": 1}, id="")), text("done")]) as simulator:
        result = await run(simulator.model(), streaming)
    assert result.output == "done"
    assert simulator.requests[1].body["messages"][1]["tool_calls"][0]["id"].startswith("pyd_ai_")


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
            await run(simulator.model(timeout=0.25), streaming)
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


@both_ways
async def test_an_exhausted_script_is_a_clear_error_and_not_retried(streaming: bool) -> None:
    with Simulator([calls(call("double", {"x": 2}))]) as simulator:
        with pytest.raises(ModelHTTPError, match="Script exhausted: request 2 came after all 1 turns"):
            await run(simulator.model(retries=5), streaming)
    assert len(simulator.requests) == 2


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        (
            [{"role": "assistant", "tool_calls": [{"id": "a"}]}, {"role": "user"}],
            "responding to each 'tool_call_id': ['a']",
        ),
        ([{"role": "user"}, {"role": "tool", "tool_call_id": "a"}], "must be a response to a preceding message"),
        ([], "you must provide a messages parameter"),
    ],
)
def test_what_openai_refuses_is_refused_and_takes_no_turn(messages: list[dict[str, Any]], reason: str) -> None:
    turns: list[Turn] = [text("never")]
    with Simulator(turns) as simulator:
        url, data = f"{simulator.base_url}/chat/completions", json.dumps({"model": "m", "messages": messages}).encode()
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(url, data, timeout=5)
        with caught.value as response:
            assert response.status == 400
            assert reason in json.load(response)["error"]["message"]
    assert simulator.turns_left == 1


async def test_a_failure_of_the_simulator_itself_is_raised_on_exit() -> None:
    toolless = Agent()
    with pytest.raises(ExceptionGroup, match="The simulator itself failed") as caught:
        with Simulator([broken_args("{")]) as simulator:
            await toolless.run("go", model=simulator.model())
    assert caught.group_contains(KeyError)
    assert isinstance(caught.value.__cause__, ModelHTTPError)


async def test_an_answer_that_is_no_completion_is_refused_by_the_adapter() -> None:
    with Simulator([http_error(200, body={"id": "x"})]) as simulator:
        with pytest.raises(UnexpectedModelBehavior):
            await run(simulator.model(), streaming=False)
