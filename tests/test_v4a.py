"""V4A diffs: a line keeps the end it had, and a change is made where the diff says or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Agent
from temporalio.client import Client

from perdure import App
from perdure.toolsets.apply_patch import patching
from perdure.toolsets.v4a import changed
from tests.deciding import answers
from tests.harness import working
from tests.scripts import Script

CODE = "def a():\n  x\ndef b():\n  x\n"


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, str, str]:
    """A text with unlike ends of lines, a diff of all of it, and the text after that."""
    before: list[str] = []
    diff: list[str] = []
    after: list[str] = []
    for number in range(draw(st.integers(1, 6))):
        own = draw(st.sampled_from(["\n", "\r\n"]))
        line, action = f"line {number}", draw(st.sampled_from([" ", "-", "-+", " +"]))
        before.append(line + own)
        diff.append(f"{action[0]}{line}")
        after += [line + own] if action[0] == " " else []
        if action.endswith("+"):
            diff.append(f"+new {number}")
            after.append(f"new {number}{own}")
    return "".join(before), draw(st.sampled_from(["\n", "\r\n"])).join(diff), "".join(after)


@given(edits())
def test_each_line_keeps_the_end_it_had(edit: tuple[str, str, str]) -> None:
    before, diff, after = edit
    assert changed(before, diff) == after


@pytest.mark.parametrize(
    ("before", "diff", "after"),
    [
        ("a\r\nb\nc", " c\n+d", "a\r\nb\nc\nd"),
        ("a\nb\r\n", "+0\n a", "0\na\nb\r\n"),
        ("a\r\nb\n", "@@\n-b\n+c\n*** End of File", "a\r\nc\n"),
        ("a\r\nb\r\n", "-b\n+c", "a\r\nc\r\n"),
        ("a\rb\r\nc\n", "-c\n+d", "a\rb\r\nd\n"),
    ],
)
def test_ends_of_lines(before: str, diff: str, after: str) -> None:
    assert changed(before, diff) == after


@pytest.mark.parametrize("mark", ["\0", "\1"])
def test_unlike_ends_beside_the_marks_are_refused(mark: str) -> None:
    with pytest.raises(ValueError, match="CR LF and in LF"):
        changed(f"a\r\n{mark}b\nc\n", "-c\n+d")


@pytest.mark.parametrize(
    ("diff", "after"),
    [
        ("@@ def b():\n-  x\n+  y", "def a():\n  x\ndef b():\n  y\n"),
        ("@@   def b():  \n-  x\n+  y", "def a():\n  x\ndef b():\n  y\n"),
        ("@@ def a():\n-  x\n+  y\n@@ def b():\n-  x\n+  z", "def a():\n  y\ndef b():\n  z\n"),
        ("@@\n-  x\n+  y", "def a():\n  y\ndef b():\n  x\n"),
        ("@@ def b():\n@@   x\n+  y", "def a():\n  x\ndef b():\n  x\n  y\n"),
    ],
)
def test_a_header_says_where(diff: str, after: str) -> None:
    assert changed(CODE, diff) == after


@pytest.mark.parametrize("header", ["@@ def zzz():", "@@ def b", "@@ -1,2 +1,2 @@", "@@\n@@ def zzz():"])
async def test_a_header_that_isnt_in_the_file_changes_nothing(
    client: Client, cache: int, tmp_path: Path, header: str
) -> None:
    (tmp_path / "m.py").write_text(CODE)
    call = {"apply_patch": {"type": "update_file", "path": "m.py", "diff": f"{header}\n-  x\n+  y\n"}}
    agent = Agent(Script(call, "done").model, name="coder", toolsets=[patching(tmp_path, gated=False)])
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        handle = await runs.start("coder", "go")
        await handle.result()
        ((outcome, text),) = (await answers(handle)).values()
    assert outcome == "failed"
    assert text.startswith("The diff doesn't fit: Invalid Anchor")
    assert (tmp_path / "m.py").read_text() == CODE
