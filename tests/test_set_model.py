"""`set_model` and `set_limits` in an open run: another model from the next request on; who may; before it has begun."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client

from perdure import App, Approval, DeclarationError, DurableAgent, Limits, Notification
from perdure.client import PerdureClient, RunClosed
from perdure.contracts import LIMITS, args_digest
from perdure.tokens import SignedTokens, make_token
from tests.command import perdure
from tests.deciding import pending, refused, update
from tests.harness import Handle, messages, until, working
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed
from tests.tokens import KEYS, PUBLIC


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
        await asyncio.wait_for(switching.begun.wait(), 20)
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


def asking(told: list[Notification] | None = None, approval: Approval | None = None, **options: Any) -> App:
    """An agent whose first request is one too many."""

    async def tell(notification: Notification) -> None:
        assert told is not None
        told.append(notification)

    agent = Agent(Script("done").model, name="asks")
    durable = DurableAgent(agent, limits=Limits(requests=0), on_limit="ask", limit_approval=approval)
    return App(agents=[durable], notifier=tell if told is not None else None, **options)


async def test_only_who_is_verified_and_named_sets_limits(client: Client, cache: int) -> None:
    app = asking(approval=Approval(approvers=["group:finance"], forbid_self=True), verifier=SignedTokens(PUBLIC))

    def token(name: str, handle: Handle, limits: dict[str, Any]) -> str:
        digest = args_digest(limits)
        return make_token(KEYS[name][0], workflow_id=handle.id, call=LIMITS, decision="set_limits", digest=digest)

    more = {"requests": 1}
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("asks", "go", by="zoe")
        await pending(handle, 1)
        assert "without a 'token'" in await refused(handle, "set_limits", {"limits": more, "by": "ann"})
        eve = {"limits": more, "token": token("eve", handle, more)}
        assert "NotAllowed: 'eve' may not set limits" in await refused(handle, "set_limits", eve)
        other = {"limits": more, "token": token("ann", handle, {"requests": 2})}
        assert "isn't made for this decision: digest differ" in await refused(handle, "set_limits", other)
        await update(handle, "set_limits", {"limits": more, "token": token("ann", handle, more)})
        assert (await handle.result())["output"] == "done"
        rows = [row for row in await handle.query("audit") if row["event"] == "set_limits"]
    assert [(row["by"], row["verified"], row["groups"]) for row in rows] == [("ann", True, ["finance"])]


async def test_whoever_started_a_run_may_be_forbidden_to_raise_its_limits(client: Client) -> None:
    async with working(client, asking(approval=Approval(forbid_self=True))) as runs:
        assert (await runs.failure("asks", "go")).type == "InvalidRequest"
        handle = await runs.start("asks", "go", by="zoe")
        await pending(handle, 1)
        for by in ("zoe", "Zoe", ""):
            assert "NotAllowed" in await refused(handle, "set_limits", {"limits": {"requests": 1}, "by": by})
        await update(handle, "set_limits", {"limits": {"requests": 1}, "by": "ann"})
        await handle.result()


async def test_people_are_told_of_a_limit(client: Client, cache: int) -> None:
    told: list[Notification] = []
    async with working(client, asking(told, Approval(approvers=["ann"])), cache=cache) as runs:
        handle = await runs.start("asks", "go")
        await pending(handle, 1)
        await update(handle, "set_limits", {"limits": {"requests": 1}, "by": "ann", "reason": "fine"})
        await handle.result()
    rows = [(one.event, one.kind, one.call, one.outcome, one.by, one.reason) for one in told]
    assert rows == [("asked", "limit", "limit-1", "", "", ""), ("decided", "limit", "limit-1", "raised", "ann", "fine")]
    assert (told[0].args, told[0].approvers) == (
        {"limit": "requests", "used": 0, "allowed": 0, "needed": 1},
        ["ann"],
    )


async def test_the_commands_show_and_set(client: Client) -> None:
    address = client.service_client.config.target_host
    async with working(client, asking()) as runs:
        handle = await runs.start("asks", "go")
        await pending(handle, 1)
        inbox = (await perdure("inbox", address=address)).out
        assert handle.id in inbox
        assert '{"limit": "requests", "used": 0, "allowed": 0, "needed": 1}' in inbox
        wrong = await perdure("set-limits", handle.id, "--requests", "many", address=address)
        assert (wrong.code, "limits.requests" in wrong.err) == (2, True)
        assert (await perdure("set-limits", handle.id, address=address)).code == 2
        no_model = await perdure("set-model", handle.id, "huge", address=address)
        assert (no_model.code, "has no model 'huge'" in no_model.err) == (1, True)
        model = await perdure("set-model", handle.id, "--by", "ann", address=address)
        assert model.out.startswith("the next request goes to function:")
        few = await perdure("set-limits", handle.id, "--requests", "0", "--limit", "turn_cost=none", address=address)
        assert few.out == 'set {"requests": 0, "turn_cost": null}; it still waits at limit-1: see `perdure inbox`\n'
        done = await perdure("set-limits", handle.id, "--requests", "2", "--by", "ann", address=address)
        assert done.out == 'set {"requests": 2}\n'
        await handle.result()
        audit = (await perdure("show", handle.id, "--audit", address=address)).out
        assert "set_limits" in audit
        with pytest.raises(RunClosed):
            await PerdureClient(client).run(handle.id).set_model(None)


def test_declarations_that_mean_nothing_are_refused() -> None:
    agent = Agent(Script("done").model, name="asks")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"on_limit": "pause"}, "none of fail, ask"),
        ({"limit_approval": Approval(quorum=2)}, "takes no quorum"),
        ({"limit_approval": Approval(allow_edit=True), "on_limit": "ask"}, "takes no quorum, when or allow_edit"),
    ]
    for options, why in wrong:
        with pytest.raises(DeclarationError, match=why):
            DurableAgent(agent, **options)
    with pytest.raises(DeclarationError, match="limit_approval asks"):
        App(agents=[DurableAgent(agent, on_limit="ask", limit_approval=Approval(approvers=["group:x"]))])
