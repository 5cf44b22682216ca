"""A policy that applies to no tool: refused where that is known, else told by `check`, the worker and the run."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset
from temporalio.client import Client

from perdure import App, Approval, DeclarationError, DurableAgent, ToolPolicy
from perdure.checks.undecided import may_match, undecided
from perdure.cli.check import check
from perdure.contracts import StatusView
from perdure.toolsets.mcp import MCPServer
from perdure.toolsets.namespace import namespace
from tests.harness import Handle, working
from tests.mcp_servers import opened
from tests.scripts import Script

GATED = ToolPolicy(approval=Approval())
LOGGER = "perdure.policies"


def crm(id: str = "crm") -> MCPServer:
    """A server that nobody connects to."""
    return MCPServer("http://127.0.0.1:9/mcp", id=id)


def clerk(policies: dict[str, ToolPolicy], *toolsets: AbstractToolset[Any]) -> DurableAgent:
    """An agent of that name."""
    return DurableAgent(Agent(TestModel(), name="clerk", toolsets=list(toolsets)), policies=policies)


async def warnings(handle: Handle) -> list[str]:
    """What a run warns of."""
    return (await handle.query("status", result_type=StatusView)).warnings


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the worker has logged of policies."""
    return [record.getMessage() for record in caplog.records if record.name == LOGGER]


async def keep(ctx: RunContext[Any], tool: ToolDefinition) -> ToolDefinition:
    """A `prepare` that changes nothing: only a run can know that."""
    return tool


@pytest.mark.parametrize(
    ("pattern", "prefix", "may"),
    [
        ("crm_refund", "crm_", True),
        ("raed", "crm_", False),
        ("crm*", "crm_", True),
        ("c*", "crm_", True),
        ("*", "crm_", True),
        ("crm_ref*", "crm_", True),
        ("cmr_*", "crm_", False),
        ("[cd]rm_x", "crm_", True),
        ("raed", "", True),
    ],
)
def test_what_a_policy_may_be_for(pattern: str, prefix: str, may: bool) -> None:
    assert may_match(pattern, prefix) is may


def test_a_policy_that_no_toolset_can_have_a_tool_for_is_refused() -> None:
    words = r"'raed' matches no tool. Known tools: \[\]; those of MCPServer 'crm' begin with 'crm_'."
    with pytest.raises(DeclarationError, match=words):
        App(agents=[clerk({"raed": GATED}, crm().prefixed("crm"))])


def test_a_refusal_names_close_tools() -> None:
    tools = FunctionToolset[Any](id="tools")
    tools.add_function(lambda city: city, name="temperature", description="In a city.")
    with pytest.raises(DeclarationError, match=r"'temprature' matches no tool.* Did you mean 'temperature'\?"):
        App(agents=[clerk({"temprature": GATED}, tools)])


def test_which_toolset_a_policy_depends_on() -> None:
    prepared = FunctionToolset[Any](id="own")
    prepared.add_function(lambda: "x", name="read", description="Reads.", prepare=keep)
    durable = clerk(
        {"crm_refund": GATED, "files_x": GATED, "raed": GATED, "read": GATED},
        crm().prefixed("crm"),
        crm().renamed({"files_x": "y"}).prefixed("files"),
        prepared,
    )
    assert undecided(durable) == {
        "crm_refund": ["MCPServer 'crm'", "FunctionToolset 'own'"],
        "files_x": ["MCPServer 'crm'", "FunctionToolset 'own'"],
        "raed": ["FunctionToolset 'own'"],
    }


def test_check_says_which_policies_only_a_run_can_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "clerks.py").write_text(
        "from tests.test_policies_unmatched import *\n"
        "app = App(agents=[clerk({'crm_refund': GATED, 'raed': GATED}, crm().prefixed('crm'), crm('other'))])\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("COLUMNS", "200")
    check("clerks:app")
    lines = " ".join(capsys.readouterr().out.split())
    assert "policy 'raed' can be judged only in a run: it may be for a tool of MCPServer 'other'" in lines
    assert "policy 'crm_refund' can be judged only in a run" in lines


async def test_the_worker_and_the_run_say_that_a_gate_gates_nothing(
    client: Client, cache: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policies = {"pya": GATED, "looking": ToolPolicy(effect="safe"), "wipe": GATED}
    script = Script({"look": {"n": 1}}, {"look": {"n": 2}}, "done")
    caplog.set_level(logging.WARNING, LOGGER)
    async with (
        opened("stdio", tmp_path) as shop,
        working(client, shop.app(script.model, policies), cache=cache) as runs,
    ):
        handle, other = await runs.start("shop", "go"), await runs.start("shop", "go")
        assert (await handle.result())["output"] == (await other.result())["output"] == "done"
        no_tool = "matches none of the tools that the agent's toolsets list."
        gate = f"policy 'pya' {no_tool} Did you mean 'pay'? Its approval gates nothing."
        assert [await warnings(handle), await warnings(other)] == [[gate], [gate]]
    assert said(caplog) == [f"agent 'shop': {gate}", f"agent 'shop': policy 'looking' {no_tool} Did you mean 'look'?"]


async def test_a_policy_that_never_applies_is_told_too(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policies = {"p*": ToolPolicy(timeout=30), "pa*": GATED}
    async with opened("stdio", tmp_path) as shop:
        async with working(client, shop.app(Script("done").model, policies)) as runs:
            handle = await runs.start("shop", "go")
            await handle.result()
            (warning,) = await warnings(handle)
    assert warning == "policy 'pa*' never applies: ['pay'] have ['p*']. Its approval gates nothing."
    assert len(said(caplog)) == 1


async def test_nothing_is_said_while_a_server_has_not_listed(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script("done")
    async with opened("http", tmp_path, started=False) as shop:
        app = shop.app(script.model, {"pya": GATED}, optional=True)
        async with working(client, app) as runs:
            handle = await runs.start("shop", "go")
            await handle.result()
            assert (await warnings(handle), said(caplog)) == ([], [])
            await shop.start()
            handle = await runs.start("shop", "go")
            await handle.result()
            assert len(await warnings(handle)) == len(said(caplog)) == 1


async def test_tools_that_are_hidden_count(client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    script = Script("done")
    async with opened("stdio", tmp_path) as shop:
        hidden = namespace(shop.server(), name="shop", description="Buying things")
        policies = {"shop_pay": GATED, "shop_put": GATED, "shop_pya": GATED}
        durable = DurableAgent(Agent(script.model, name="buyer", toolsets=[hidden]), policies=policies)
        async with working(client, App(agents=[durable])) as runs:
            handle = await runs.start("buyer", "go")
            await handle.result()
            (warning,) = await warnings(handle)
    assert "'shop_pya'" in warning
    assert "Did you mean 'shop_pay'" in warning
    assert len(said(caplog)) == 1
