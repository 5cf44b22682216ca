"""What `perdure check` and `tools` print of names that people copy, in a narrow terminal, piped, and where there are
none."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from examples.sources.__main__ import says_yes
from tests.command import ROOT, perdure
from tests.terminal import in_a_terminal

NAME = "temperature_of_the_room_upstairs"
APP = f'''
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import DynamicToolset

from perdure import App, Approval, DurableAgent, ToolPolicy

tools = FunctionToolset(id="t")


@tools.tool_plain
def {NAME}(room: str, unit: str = "celsius") -> str:
    """Look something up, with a description that is longer than a line of a terminal, and goes on.

    And more.
    """
    return room


policies = {{"temperature*": ToolPolicy(effect="idempotent", approval=Approval(approvers=["ann", "bob"]))}}
some = Agent(TestModel(), name="some", toolsets=[tools])
later = Agent(TestModel(), name="later", toolsets=[DynamicToolset(lambda ctx: tools, id="d")])
none = Agent(TestModel(), name="none")
app = App(agents=[DurableAgent(some, policies=policies), later, none])
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "users_app.py").write_text(APP)
    return tmp_path


async def test_piped_each_tool_is_a_line(folder: Path) -> None:
    done = await perdure("check", "users_app:app", cwd=folder, COLUMNS="80")
    (line,) = [line for line in done.out.splitlines() if NAME in line]
    words = (NAME, "idempotent", "5 attempts", "no timeout", "approval, of ann, bob", "room: string · unit?: string")
    assert [word for word in words if word in line] == list(words)
    assert "goes on. · And more." in line


async def test_in_a_narrow_terminal_names_are_whole(folder: Path) -> None:
    env = {"TERM": "xterm", "COLUMNS": "80", "LINES": "30", "PYTHONPATH": f"{folder}:{ROOT}"}
    async with in_a_terminal("-m", "perdure.cli", "check", "users_app:app", **env) as terminal:
        assert await terminal.end() == 0
    (line,) = [line for line in terminal.shown.splitlines() if NAME in line]
    assert "idempotent" in line
    assert "…" not in terminal.shown
    assert {len(line) for line in terminal.shown.splitlines() if line[:1] in ("┃", "│")} == {80}


async def test_tools_says_per_agent_what_is_not_known(folder: Path) -> None:
    done = await perdure("tools", "users_app:app", cwd=folder)
    assert (done.code, done.err) == (0, "")
    some, later, none = done.out.split("# Tools of agent ")[1:]
    assert f"def {NAME}(" in some
    more = "of MCP servers, dynamic toolsets, capabilities"
    assert later == f"'later'\n\n# None is known without a run, which lists them: {more}.\n\n"
    assert none == "'none'\n\n# none\n"


def test_the_example_says_how_to_run_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with pytest.raises(SystemExit, match=r"use `python -m examples\.sources --approve`"):
        says_yes()
