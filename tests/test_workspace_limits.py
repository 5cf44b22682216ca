"""What the tools of a workspace refuse, and the bounds of what they tell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent

from perdure import DeclarationError
from perdure.toolsets.apply_patch import patching
from perdure.toolsets.workspace import workspace
from tests.scripts import Script


async def told(toolset: Any, *calls: dict[str, dict[str, Any]]) -> list[str]:
    """What the model is told of each call."""
    agent = Agent(Script(*calls, "done").model, toolsets=[toolset])
    return [
        part.model_response_str(wrap_if_error=False)
        for message in (await agent.run("go")).all_messages()
        for part in message.parts
        if part.part_kind == "tool-return"
    ]


def write(path: str, text: str = "x\n") -> dict[str, dict[str, Any]]:
    return {"write_file": {"path": path, "text": text}}


def patch(type: str, path: str, diff: str = "") -> dict[str, dict[str, Any]]:
    return {"apply_patch": {"type": type, "path": path, "diff": diff}}


GIT = [".git/config", ".git", ".GIT/hooks/pre-commit", "sub/.git/config", "./.git//config"]


async def test_what_git_runs_is_not_written(tmp_path: Path) -> None:
    """A config written by a tool would name the program that the next `git status` of a person runs."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("x\n")
    writes = await told(workspace(tmp_path, shell=False, gated=False), *map(write, GIT))
    patches = [patch(type, path, "+x") for path in GIT for type in ("create_file", "delete_file")]
    patches.append(patch("update_file", ".git/config", "@@\n+x\n"))
    answers = [*writes, *await told(patching(tmp_path, gated=False), *patches)]
    assert [text for text in answers if "belongs to git" not in text] == []
    assert len(answers) == 16
    assert (tmp_path / ".git/config").read_text() == "x\n"
    assert (os.listdir(tmp_path), os.listdir(tmp_path / ".git")) == ([".git"], ["config"])


async def test_git_is_read_and_its_neighbours_are_written(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    calls = ({"read_file": {"path": ".git/HEAD"}}, write(".gitignore"), write(".github/x"), write("a.git/x"))
    answers = await told(workspace(tmp_path, gated=False), *calls)
    assert answers == ["ref: refs/heads/main\n", ".gitignore: created", ".github/x: created", "a.git/x: created"]


async def test_git_is_written_where_it_may_be(tmp_path: Path) -> None:
    assert await told(workspace(tmp_path, gated=False, git=True), write(".git/x")) == [".git/x: created"]
    tools = patching(tmp_path, gated=False, git=True)
    assert await told(tools, patch("delete_file", ".git/x")) == [".git/x: deleted"]


@pytest.mark.parametrize("root", ["", "here", None])
async def test_a_root_that_is_not_absolute_is_named(root: Any) -> None:
    for make in (workspace, patching):
        with pytest.raises(DeclarationError, match=f"root={root!r} must be the absolute path"):
            make(root)
    text = f"The folder of this run can't be used: root={root!r} must be the absolute path of a folder, as str or Path."
    run = {"run_command": {"command": "touch here"}}
    assert await told(workspace(lambda _: root, gated=False), write("x"), {"list_files": {}}, run) == [text] * 3
    assert await told(patching(lambda _: root, gated=False), patch("create_file", "x", "+a")) == [text]


async def test_lines_are_counted_as_other_programs_count_them(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes("one\x0c\x1c\u2028\x85\rone\ntwo\r\n\nfour".encode())
    pages = [{"read_file": {"path": "f", "start": start, "lines": 1}} for start in (1, 2, 3, 4, 5, 1000)]
    assert await told(workspace(tmp_path), *pages) == [
        "[lines 1 to 1 of 4]\none\x0c\x1c\u2028\x85\rone\n",
        "[lines 2 to 2 of 4]\ntwo\r\n",
        "[lines 3 to 3 of 4]\n\n",
        "[lines 4 to 4 of 4]\nfour",
        "[there is no line 5: the file has 4]",
        "[there is no line 1000: the file has 4]",
    ]


async def test_a_list_is_bounded_and_a_name_is_one_row(tmp_path: Path) -> None:
    (tmp_path / "forged\nrow").write_text("")
    (tmp_path / "x").mkdir()
    for n in range(1200):
        (tmp_path / "x" / f"{n:04}").write_text("")
    calls: Any = ({"list_files": {}}, {"list_files": {"path": "x"}})
    short = await told(workspace(tmp_path, max_output=100), *calls)
    assert short == [
        "'forged\\nrow'\nx/",
        "".join(f"{n:04}\n" for n in range(20)) + "[1180 more are left out]",
    ]
    long = (await told(workspace(tmp_path), *calls))[1].splitlines()
    assert (len(long), long[-2:]) == (1001, ["0999", "[200 more are left out]"])
