"""The tool `apply_patch` (row S2 type 8): diffs as OpenAI's models write them, each with one effect."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.exceptions import ToolFailed
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from perdure import App, DurableAgent, ToolPolicy, current_call
from perdure.toolsets.apply_patch import _apply, patching  # pyright: ignore[reportPrivateUsage]
from perdure.toolsets.folder import Folder
from perdure.toolsets.paths import FolderError
from tests.deciding import answers, pending, update
from tests.harness import attempts, working
from tests.scripts import Script

BEFORE = "def a():\n    return 1\n\n\ndef b():\n    return 1\n"
AFTER = "def a():\n    return 1\n\n\ndef b():\n    # two\n    return 2\n"
DIFF = "@@ def b():\n-    return 1\n+    # two\n+    return 2\n"


async def test_s2_type_08_a_patch_waits_for_a_person_and_is_applied(client: Client, tmp_path: Path, cache: int) -> None:
    (tmp_path / "m.py").write_text(BEFORE)
    call = {"apply_patch": {"type": "update_file", "path": "m.py", "diff": DIFF}}
    agent = Agent(Script(call, call, "done").model, name="coder", toolsets=[patching(tmp_path)], deps_type=Any)
    app = App(agents=[DurableAgent(agent, deps=lambda *_: None)])
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("coder", "go")
        for _ in range(2):
            (row,) = await pending(handle, 1)
            await update(handle, "approve", {"call": row["call"]})
            assert row["args"]["diff"] == DIFF
            if row["call"].startswith("1."):
                await pending(handle, 0)
        assert (await handle.result())["output"] == "done"
        found = await answers(handle)
    assert (tmp_path / "m.py").read_text() == AFTER
    assert found["c0.0"] == ("success", "m.py: changed")
    assert found["c1.0"] == ("success", "m.py: had been changed so already")


@pytest.mark.parametrize("marks", [True, False])
async def test_s2_type_08_a_repeated_attempt_changes_nothing(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marks: bool
) -> None:
    """The first attempt writes and is lost: the diff would fit once more, and must not be applied twice.

    Without the attributes of Linux it isn't known whether the first has written: the model is told to look.
    """
    if not marks:
        monkeypatch.delattr(os, "getxattr")
    elif not keeps_marks(tmp_path):
        pytest.skip("this disk keeps no extended attributes")
    (tmp_path / "list").write_text("one\n")
    tools: Any = patching(tmp_path, gated=False)
    own = tools.tools["apply_patch"].function

    def lost(*args: Any, **named: Any) -> str:
        answer = own(*args, **named)
        if current_call().attempt == 1:
            raise ApplicationError("the answer is lost")
        return answer

    tools.tools["apply_patch"].function_schema.function = lost
    call = {"apply_patch": {"type": "update_file", "path": "list", "diff": "@@\n+one\n"}}
    agent = Agent(Script(call, "done").model, name="coder", toolsets=[tools], deps_type=Any)
    policy = ToolPolicy(effect="idempotent", backoff=0.02)
    app = App(agents=[DurableAgent(agent, policies={"apply_patch": policy}, deps=lambda *_: None)])
    async with working(client, app) as runs:
        handle = await runs.start("coder", "go")
        assert (await handle.result())["output"] == "done"
        assert await attempts(handle) == [1, 2, 1]
        assert (await answers(handle))["c0.0"] == (
            ("success", "list: had been changed so already")
            if marks
            else ("failed", "Whether an earlier attempt has changed 'list' can't be told: read it.")
        )
    assert (tmp_path / "list").read_text() == "one\none\n"


def keeps_marks(folder: Path) -> bool:
    """Whether the disk has extended attributes."""
    Folder(folder).write("probe", b"", mark="m")
    return Folder(folder).marks("probe") == ["m"]


def test_marks_stay_with_a_file_through_later_writes(tmp_path: Path) -> None:
    if not keeps_marks(tmp_path):
        pytest.skip("this disk keeps no extended attributes")
    files = Folder(tmp_path)
    for n in range(40):
        files.write("f", str(n).encode(), mark=f"m{n}")
    files.write("f", b"by another tool")
    assert files.marks("f") == [f"m{n}" for n in range(10, 40)]


def test_s2_type_08_files_are_created_and_deleted_once(tmp_path: Path) -> None:
    files = Folder(tmp_path)
    assert _apply(files, "create_file", "d/new", "+a\n+b\n") == "d/new: created"
    assert (tmp_path / "d/new").read_text() == "a\nb"
    assert _apply(files, "create_file", "d/new", "+a\n+b\n") == "d/new: unchanged"
    with pytest.raises(FolderError, match="is there already, with other content"):
        _apply(files, "create_file", "d/new", "+c\n")
    assert _apply(files, "delete_file", "d/new", "") == "d/new: deleted"
    assert _apply(files, "delete_file", "d/new", "") == "d/new: was not there"
    with pytest.raises(FolderError, match="there is no 'd/new'"):
        _apply(files, "update_file", "d/new", DIFF)
    with pytest.raises(FolderError, match=r"without '\.\.'"):
        _apply(files, "create_file", "../new", "+a")


def test_s2_type_08_what_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("x = 1\n")
    for diff in (DIFF, "no diff", "*** Begin Patch\n@@\n-x = 1\n+x = 2", "@@\n-x = 2\n+x = 3"):
        with pytest.raises(ToolFailed, match="The diff doesn't fit"):
            _apply(Folder(tmp_path), "update_file", "m.py", diff)
    assert (tmp_path / "m.py").read_text() == "x = 1\n"
    assert _apply(Folder(tmp_path), "update_file", "m.py", "") == "m.py: unchanged"


def test_s2_type_08_line_ends_stay(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_bytes(BEFORE.replace("\n", "\r\n").encode())
    assert _apply(Folder(tmp_path), "update_file", "m.py", DIFF) == "m.py: changed"
    assert (tmp_path / "m.py").read_bytes() == AFTER.replace("\n", "\r\n").encode()


LINES = st.lists(st.sampled_from(["@@", "@@ a", "+a", "-a", " a", "b", "", "***", "*** End of File", "-b", "+"]))


@given(LINES, st.sampled_from(["", "a", "a\n", "a\nb\na\n", "\n"]))
def test_s2_type_08_no_diff_is_a_fault_of_the_program(tmp_path_factory: Any, lines: list[str], held: str) -> None:
    folder: Path = tmp_path_factory.mktemp("patched")
    (folder / "f").write_text(held)
    for type in ("update_file", "create_file"):
        try:
            answer = _apply(Folder(folder), type, "f", "\n".join(lines))
            assert answer.startswith("f: ")
        except (ToolFailed, FolderError):
            continue
