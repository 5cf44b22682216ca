"""Commands that take the ground from under themselves, and files that are too large for one call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from temporalio.client import Client

from perdure import App
from perdure.toolsets.apply_patch import patching
from perdure.toolsets.workspace import MAX_ARGUMENTS, workspace
from tests.deciding import answers
from tests.harness import working
from tests.scripts import Script


def coder(root: Path, *turns: Any) -> App:
    """An agent that asks nobody."""
    toolsets = [workspace(root, gated=False), patching(root, gated=False)]
    return App(agents=[Agent(Script(*turns).model, name="coder", toolsets=toolsets)])


def run(command: str) -> dict[str, Any]:
    return {"run_command": {"command": command}}


async def told(client: Client, cache: int, app: App) -> list[tuple[str, str]]:
    """What the calls of a run were answered with."""
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("coder", "go")
        assert (await handle.result())["output"] == "done"
        return list((await answers(handle)).values())


async def test_a_command_that_removes_its_root_has_an_output(client: Client, cache: int, tmp_path: Path) -> None:
    root = tmp_path / "it's a root"
    root.mkdir()
    removes = run('echo before; cd /; rm -rf "$HOME"; echo after >&2; exit 3')
    first, second = await told(client, cache, coder(root, removes, run("echo again"), "done"))
    assert first[0] == "success"
    assert json.loads(first[1]) == {"exit_code": 3, "stdout": "before\n", "stderr": "after\n"}
    assert second == ("failed", "The root folder isn't there: the command was not run.")


async def test_a_command_runs_in_the_root_by_its_own_name(client: Client, cache: int, tmp_path: Path) -> None:
    root = tmp_path / "-a 'b'"
    root.mkdir()
    ((outcome, text),) = await told(client, cache, coder(root, run('pwd; echo "$0"; nonsense-command'), "done"))
    found = json.loads(text)
    assert (outcome, found["stdout"], found["exit_code"]) == ("success", f"{root}\n/bin/sh\n", 127)


@pytest.mark.parametrize("tool", ["write_file", "apply_patch"])
async def test_what_is_too_large_for_one_call_is_asked_for_in_parts(
    client: Client, cache: int, tmp_path: Path, tool: str
) -> None:
    def call(size: int) -> dict[str, Any]:
        if tool == "write_file":
            return {tool: {"path": "f", "text": "x" * size}}
        return {tool: {"type": "create_file", "path": "f", "diff": "+" + "x" * size}}

    first, second = await told(client, cache, coder(tmp_path, call(1_000_000), call(MAX_ARGUMENTS - 100), "done"))
    assert first[0] == "retried"
    assert f"they may have {MAX_ARGUMENTS}" in first[1]
    assert second == ("success", "f: created")
    assert (tmp_path / "f").stat().st_size == MAX_ARGUMENTS - 100
