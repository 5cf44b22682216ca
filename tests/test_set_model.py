"""`set_model` in an open run: another model from the next request on, and before the run has begun."""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client

from perdure import App, DurableAgent
from perdure.client import PerdureClient
from tests.deciding import refused, update
from tests.harness import Handle, messages, until, working
from tests.sessions import SESSION, answered, closed


class Switching:
    """An agent with a model of its own and two others, and what each was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.seen_by_tool: list[str] = []
        self.held, self.begun = asyncio.Event(), asyncio.Event()
        self.held.set()
        models = {"large": self.model("large"), "small": self.model("small")}
        agent = Agent(self.model("own"), name="switches", tools=[self.look])
        self.app = App(agents=[DurableAgent(agent, models=models)])

    def model(self, name: str) -> FunctionModel:
        """A model that thinks as its provider would, calls the tool at `look`, and else says who it is."""

        async def ask(asked: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            self.asked.append(name)
            last = asked[-1].parts[-1]
            calls = last.part_kind == "user-prompt" and last.content == "look"
            thought = ThinkingPart(f"I am {name}", id="t1", signature=f"signed-{name}", provider_name=name)
            return ModelResponse(parts=[thought, ToolCallPart("look", {}) if calls else TextPart(f"from {name}")])

        return FunctionModel(ask, model_name=name)

    async def look(self, ctx: RunContext[object]) -> str:
        """Holds the run, if asked to."""
        self.seen_by_tool.append(ctx.model.model_name)
        self.begun.set()
        await self.held.wait()
        return "seen"


async def used(handle: Handle) -> list[str | None]:
    """Which model gave each response."""
    return [message.model_name for message in await messages(handle) if isinstance(message, ModelResponse)]


async def test_another_model_takes_up_the_conversation(client: Client, cache: int) -> None:
    switching = Switching()
    async with working(client, switching.app, cache=cache) as runs:
        handle = await runs.start("switches", **SESSION)
        assert await answered(handle, "hi") == "from own"
        assert await update(handle, "set_model", {"model": "large", "by": "ann"}) == {
            "model": "large",
            "id": "function:large",
        }
        assert (await handle.query("status"))["model"] == "function:large"
        assert await answered(handle, "hi") == "from large"
        await handle.signal("set_model", {"model": "small"})
        assert await answered(handle, "hi") == "from small"
        assert (await PerdureClient(client).run(handle.id).set_model(None)).id == "function:own"
        assert await answered(handle, "hi") == "from own"
        await closed(handle)
        assert await used(handle) == ["own", "large", "small", "own"]
        audit = await handle.query("audit")
    rows = [(row["event"], row["before"], row["model"], row.get("by"), row["via"]) for row in audit]
    assert rows == [
        ("set_model", "(its own)", "large", "ann", "update"),
        ("set_model", "large", "small", None, "signal"),
        ("set_model", "small", "(its own)", None, "update"),
    ]


async def test_the_step_in_progress_keeps_its_model(client: Client, cache: int) -> None:
    switching = Switching()
    switching.held.clear()
    async with working(client, switching.app, cache=cache) as runs:
        handle = await runs.start("switches", "look", model="small")
        await asyncio.wait_for(switching.begun.wait(), 90)
        await update(handle, "set_model", {"model": "large"})
        switching.held.set()
        assert (await handle.result())["output"] == "from large"
    assert (switching.asked, switching.seen_by_tool) == (["small", "large"], ["small"])


async def test_an_unknown_model_is_refused(client: Client) -> None:
    async with working(client, Switching().app) as runs:
        handle = await runs.start("switches", **SESSION)
        await until_prepared(handle)
        for sent, why in (
            ({"model": "huge"}, "has no model 'huge'. Known models: ['large', 'small'], null for its own"),
            ({}, "request.model: Field required"),
            ({"model": "small", "reason": "x"}, "Extra inputs"),
        ):
            assert why in await refused(handle, "set_model", sent)
        await handle.signal("set_model", {"model": "huge"})
        (row,) = (await handle.query("status"))["rejected"]
        assert (row["signal"], "huge" in row["reason"]) == ("set_model", True)
        await closed(handle)


async def until_prepared(handle: Handle) -> None:
    """Wait until the run knows its agent."""

    async def known() -> bool:
        return (await handle.query("status"))["model"] != ""

    await until(known)


async def test_what_is_set_before_the_run_is_prepared_counts_from_the_first_request(client: Client, cache: int) -> None:
    switching = Switching()
    async with working(client, switching.app, check=False) as gone:
        pass
    handle = await gone.start("switches", "hi")
    await handle.signal("set_model", {"model": "small"})
    setting = asyncio.create_task(update(handle, "set_limits", {"limits": {"requests": 7}}))
    refusing = asyncio.create_task(refused(handle, "set_model", {"model": "huge"}))
    async with working(client, switching.app, task_queue=gone.task_queue, cache=cache) as runs:
        runs.handles.append(handle)
        assert (await setting)["limits"]["requests"] == 7
        assert "has no model 'huge'" in await refusing
        assert (await handle.result())["output"] == "from small"
    assert switching.asked == ["small"]


async def test_a_model_that_was_set_is_carried(rolling_client: Client, cache: int) -> None:
    switching = Switching()
    async with working(rolling_client, switching.app, cache=cache) as runs:
        handle = await runs.start("switches", **SESSION)
        assert await answered(handle, "look") == "from own"
        await update(handle, "set_model", {"model": "large"})
        for _ in range(4):
            assert await answered(handle, "look") == "from large"
        await closed(handle)
    assert set(switching.asked[2:]) == {"large"}
