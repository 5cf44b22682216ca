"""The simulator, driven by Pydantic AI's own OpenAI adapter."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import (
    ModelHTTPError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import PartDeltaEvent

from tests.simulated import agent, both_ways, returns, run
from tests.simulator import (
    Simulator,
    Turn,
    broken_args,
    call,
    calls,
    http_error,
    text,
)


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
