"""MCP servers, and gateways before them, that answer a call with what nobody can read: the call may have run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.toolsets import AbstractToolset
from temporalio.client import Client

from perdure import App, DurableAgent, ToolPolicy
from perdure.contracts import MAY_HAVE_RUN
from tests.deciding import answers
from tests.harness import working
from tests.mcp_servers import Kind, Shop
from tests.mcp_servers.answering import calls, odd, starts
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed

NONE = "gave no answer that can be read."
INVALID = "answered something that isn't valid by MCP, or by its own output schema."
OVER_HTTP = ["400", "401", "404", "413", "429", "500", "502", "503", "504", "empty", "page", "cut", "accepted", "moved"]
WRONG = [("typed", "schema"), ("pay", "kind"), ("pay", "image")]
Make = Callable[[Shop], AbstractToolset[Any]]


async def told(client: Client, agent: Agent[Any, Any], policies: dict[str, ToolPolicy] | None = None) -> list[Any]:
    """The outcome and text of each call of a run."""
    app = App(agents=[DurableAgent(agent, policies=policies or {})])
    async with working(client, app) as runs:
        handle = await runs.start("shop", "go")
        assert (await handle.result())["output"] == "done"
        return list((await answers(handle)).values())


def held(shop: Shop) -> AbstractToolset[Any]:
    """perdure's."""
    return shop.server()


def own(shop: Shop) -> AbstractToolset[Any]:
    """Pydantic AI's."""
    return MCPToolset(shop.source(), id="shop", init_timeout=60)


def raising(shop: Shop) -> AbstractToolset[Any]:
    """Pydantic AI's, of which errors of the protocol come as they are."""
    return MCPToolset(shop.source(), id="shop", init_timeout=60, tool_error_behavior="error")


@pytest.mark.parametrize("make", [held, own, raising])
async def test_s3_19_what_a_gateway_answers_is_no_answer_of_the_tool(
    client: Client, tmp_path: Path, make: Make
) -> None:
    script = Script([ToolCallPart("pay", {"how": how}) for how in OVER_HTTP], "done")
    async with odd("http", tmp_path) as shop:
        rows = await told(client, Agent(script.model, name="shop", toolsets=[make(shop)]))
        assert sorted(calls(shop)) == sorted(f"pay {how}" for how in OVER_HTTP)
    name = "The MCP server 'shop'" if make is held else "The MCP server"
    assert rows == [("interrupted", f"{name} {NONE} {MAY_HAVE_RUN}")] * len(OVER_HTTP)


@pytest.mark.parametrize("how", ["404", "504", "cut"])
async def test_s3_19_an_idempotent_call_without_a_readable_answer_is_repeated(
    client: Client, tmp_path: Path, how: str
) -> None:
    script = Script({"pay": {"how": how}}, "done")
    policies = {"pay": ToolPolicy(effect="idempotent", attempts=3, backoff=0.1)}
    async with odd("http", tmp_path) as shop:
        rows = await told(client, Agent(script.model, name="shop", toolsets=[held(shop)]), policies)
        assert calls(shop) == [f"pay {how}"] * 3
    assert rows == [("failed", f"The MCP server 'shop' {NONE}")]


@pytest.mark.parametrize("make", [held, own, raising])
@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_s3_19_a_result_that_is_not_valid_may_have_run(
    client: Client, tmp_path: Path, kind: Kind, make: Make
) -> None:
    script = Script([ToolCallPart(tool, {"how": how}) for tool, how in WRONG[:2]], "done")
    async with odd(kind, tmp_path) as shop:
        rows = await told(client, Agent(script.model, name="shop", toolsets=[make(shop)]))
        assert sorted(calls(shop)) == ["pay kind", "typed schema"]
    name = "The MCP server 'shop'" if make is held else "The MCP server"
    assert rows == [("interrupted", f"{name} {INVALID} {MAY_HAVE_RUN}")] * 2


@pytest.mark.parametrize("per_run", [False, True])
@pytest.mark.parametrize(("tool", "how"), WRONG)
async def test_s3_19_a_result_that_is_not_valid_leaves_the_server_running(
    client: Client, tmp_path: Path, per_run: bool, tool: str, how: str
) -> None:
    script = Script({"pay": {"how": "ok"}}, "a", {tool: {"how": how}}, "b", {"typed": {"how": "ok"}}, "c")
    async with odd("stdio", tmp_path) as shop:
        app = shop.app(script.model, per_run=per_run)
        async with working(client, app) as runs:
            handle = await runs.start("shop", **SESSION)
            await answered(handle, "one")
            before = starts(shop)
            await answered(handle, "two")
            await answered(handle, "three")
            texts = [text for _, text in (await answers(handle)).values()]
            await closed(handle)
            assert starts(shop) == before
    assert texts[1] == f"The MCP server 'shop' {INVALID} {MAY_HAVE_RUN}"
    assert "lost" not in texts[2]
    assert calls(shop) == ["pay ok", f"{tool} {how}", "typed ok"]


async def test_s3_19_a_server_that_no_longer_knows_the_session_is_asked_for_another(
    client: Client, tmp_path: Path
) -> None:
    script = Script({"pay": {"how": "ok"}}, "a", {"pay": {"how": "ok"}}, "b")
    async with odd("http", tmp_path, sessions=True) as shop, working(client, shop.app(script.model)) as runs:
        handle = await runs.start("shop", **SESSION)
        await answered(handle, "one")
        await shop.kill()
        await shop.start()
        await answered(handle, "two")
        rows = list((await answers(handle)).values())
        await closed(handle)
        assert calls(shop) == ["pay ok", "pay ok"]
    assert [kind for kind, _ in rows] == ["success", "success"]


@pytest.mark.parametrize("error", [TimeoutError("slow"), RuntimeError("no schema"), ValueError("n")])
async def test_s3_19_an_error_of_an_ordinary_tool_is_not_taken_for_one_of_a_server(
    client: Client, error: Exception
) -> None:
    script = Script({"pay": {}}, "done")
    agent: Agent[None, str] = Agent(script.model, name="shop")

    @agent.tool_plain
    def pay() -> str:
        raise error

    assert await told(client, agent) == [("failed", f"The tool failed with {type(error).__name__}.")]
