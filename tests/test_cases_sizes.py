"""Sizes: what is too large ends typed or is told to the model, and many commands at once never get a run terminated."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from perdure import App, DurableAgent
from tests.harness import Handle, messages, working
from tests.reading import returns
from tests.scripts import Script

TOO_LARGE = "x" * 1_600_000


async def test_too_large_a_prompt_is_an_invalid_request_that_names_the_sizes(client: Client, cache: int) -> None:
    async with working(client, App(agents=[Agent(Script("done").model, name="reads")]), cache=cache) as runs:
        failure = await runs.failure("reads", TOO_LARGE)
    assert failure.type == "InvalidRequest"
    assert "1500000" in failure.message
    assert "16000" in failure.message
    assert len(failure.message) < 1000


async def test_too_large_an_output_ends_the_run_typed(client: Client, cache: int) -> None:
    async with working(client, App(agents=[Agent(Script(TOO_LARGE).model, name="writes")]), cache=cache) as runs:
        failure = await runs.failure("writes", "go")
    assert failure.type == "OutputTooLarge"
    assert "1500000" in failure.message


async def test_an_output_made_by_a_function_may_be_too_large(client: Client, cache: int) -> None:
    def enlarge(text: str) -> str:
        return text * 1_600_000

    agent = Agent(Script({"final_result": {"text": "y"}}).model, name="writes", output_type=enlarge)
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        failure = await runs.failure("writes", "go")
    assert failure.type == "OutputTooLarge"


async def test_an_output_of_which_a_step_holds_two_copies(client: Client, cache: int) -> None:
    """A step holds the response and the output made of it, so an output of text may have half of a payload."""
    async with working(client, App(agents=[Agent(Script("x" * 740_000).model, name="writes")]), cache=cache) as runs:
        handle = await runs.start("writes", "go")
        assert len((await handle.result())["output"]) == 740_000


async def test_too_large_a_tool_result_is_told_to_the_model(client: Client, cache: int) -> None:
    ran: list[str] = []

    def fetch() -> str:
        ran.append("fetch")
        return TOO_LARGE

    script = Script({"fetch": {}}, "done")
    async with working(client, App(agents=[Agent(script.model, name="reads", tools=[fetch])]), cache=cache) as runs:
        assert (await runs.run("reads", "go"))["output"] == "done"
    (part,) = returns(script.requests[1])
    assert part.outcome == "failed"
    assert "1500000" in part.model_response_str()
    assert ran == ["fetch"]


async def test_too_large_an_error_text_of_a_tool_is_cut(client: Client, cache: int) -> None:
    def fetch(again: bool) -> str:
        if again:
            return "fine"
        raise ModelRetry(TOO_LARGE + TOO_LARGE)

    script = Script({"fetch": {"again": False}}, {"fetch": {"again": True}}, "done")
    async with working(client, App(agents=[Agent(script.model, name="reads", tools=[fetch])]), cache=cache) as runs:
        assert (await runs.run("reads", "go"))["output"] == "done"


async def test_too_large_an_error_of_a_model_ends_the_run_typed(client: Client) -> None:
    def ask(asked: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise ValueError(TOO_LARGE + TOO_LARGE)

    app = App(agents=[DurableAgent(Agent(FunctionModel(ask), name="fails"), model_attempts=1)])
    async with working(client, app) as runs:
        failure = await runs.failure("fails", "go")
    assert failure.type in ("ValueError", "ModelFailed")
    assert len(failure.message) < 50_000


async def test_too_large_metadata_of_one_run_is_an_invalid_request(client: Client) -> None:
    async with working(client, App(agents=[Agent(Script("done").model, name="reads")])) as runs:
        failure = await runs.failure("reads", "go", metadata={"note": TOO_LARGE})
    assert failure.type == "InvalidRequest"


async def test_large_results_of_many_steps_are_fetched_and_not_sent(client: Client, cache: int) -> None:
    def fetch(number: int) -> str:
        return f"{number}" + "x" * 1_000_000

    script = Script(*[{"fetch": {"number": number}} for number in range(3)], "done")
    async with working(client, App(agents=[Agent(script.model, name="reads", tools=[fetch])]), cache=cache) as runs:
        assert (await runs.run("reads", "go"))["output"] == "done"
    assert [str(part.content)[0] for part in returns(script.requests[-1])] == ["0", "1", "2"]


async def parallel(client: Client, cache: int, argument: int, result: int) -> tuple[Script, list[int], Handle]:
    """25 calls in one step, with so many characters of arguments and of results each."""
    ran: list[int] = []

    def work(number: int, text: str) -> str:
        ran.append(number)
        return "r" * result

    calls: list[Any] = [ToolCallPart("work", {"number": n, "text": "a" * argument}) for n in range(25)]
    script = Script(calls, "done")
    app = App(agents=[DurableAgent(Agent(script.model, name="many", tools=[work]), max_parallel_calls=25)])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("many", "go")
        await handle.result()
        parts = returns(await messages(handle))
    assert [part.outcome for part in parts] == ["success"] * 25
    return script, ran, handle


async def test_many_calls_with_large_arguments_end_typed_or_run(client: Client, cache: int) -> None:
    """The response itself is over the limit: the run ends with the sizes, and nothing has run."""
    calls: list[Any] = [ToolCallPart("work", {"text": "a" * 190_000}) for _ in range(25)]
    ran: list[str] = []

    def work(text: str) -> str:
        ran.append(text)
        return "ok"

    app = App(agents=[DurableAgent(Agent(Script(calls).model, name="many", tools=[work]), max_parallel_calls=25)])
    async with working(client, app, cache=cache) as runs:
        failure = await runs.failure("many", "go")
    assert failure.type == "OutputTooLarge"
    assert ran == []


async def test_a_large_response_is_not_sent_along_with_each_of_its_calls(client: Client, cache: int) -> None:
    """25 times 400 KB in one workflow task would get the run terminated."""
    ran: list[int] = []

    def work(number: int) -> str:
        ran.append(number)
        return "ok"

    text = TextPart("t" * 400_000)
    calls: list[Any] = [text, *(ToolCallPart("work", {"number": number}) for number in range(25))]
    agent = Agent(Script(calls, "done").model, name="many", tools=[work])
    app = App(agents=[DurableAgent(agent, max_parallel_calls=25)])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("many", "p" * 100_000)
        assert (await handle.result())["output"] == "done"
        assert len(returns(await messages(handle))) == 25
        scheduled = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
        sent = [e.ByteSize() for e in (await handle.fetch_history()).events if e.event_type == scheduled]
        assert sum(sent) < 1_000_000
    assert sorted(ran) == list(range(25))


async def test_many_calls_with_arguments_near_the_limit_of_a_step(client: Client, cache: int) -> None:
    _, ran, _ = await parallel(client, cache, argument=27_000, result=10)
    assert sorted(ran) == list(range(25))


async def test_many_large_results_at_once(client: Client, cache: int) -> None:
    script, ran, _ = await parallel(client, cache, argument=10, result=190_000)
    assert sorted(ran) == list(range(25))
    assert [len(str(part.content)) for part in returns(script.requests[1])] == [190_000] * 25
