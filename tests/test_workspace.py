"""Tools for files and shell commands under a root folder (rows S2 types 7 and 9), in a durable run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from temporalio.client import Client

from perdure import App, DeclarationError, DurableAgent, ToolPolicy
from perdure.contracts import MAX_PAYLOAD
from perdure.toolsets.workspace import bounded, workspace
from tests.deciding import answers, cancelled, pending, told, update
from tests.harness import until, working
from tests.scripts import Script

READERS = {"list_files": ToolPolicy(effect="safe"), "read_file": ToolPolicy(effect="safe")}


def coder(root: Any, *turns: Any, **options: Any) -> App:
    """An agent with a workspace."""
    agent = Agent(Script(*turns).model, name="coder", toolsets=[workspace(root, **options)], deps_type=Any)
    return App(agents=[DurableAgent(agent, policies=READERS, deps=params_alone)])


def params_alone(params: Any, resources: Any) -> Any:
    """The deps are the params."""
    return params


def run(command: str) -> dict[str, Any]:
    return {"run_command": {"command": command}}


def alive(pid: int) -> bool:
    """Whether a process runs: one that nobody has reaped yet doesn't."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


async def test_s2_type_07_a_command_waits_for_a_person_and_then_runs_in_the_root(
    client: Client, tmp_path: Path, cache: int
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    turns: Any = ({"list_files": {}}, run("echo two >> a.txt; pwd; exit 3"), {"read_file": {"path": "a.txt"}}, "done")
    async with working(client, coder(tmp_path, *turns), cache=cache) as runs:
        handle = await runs.start("coder", "go")
        (row,) = await pending(handle, 1)
        assert (row["tool"], row["args"]["command"]) == ("run_command", "echo two >> a.txt; pwd; exit 3")
        assert (tmp_path / "a.txt").read_text() == "one\n"
        await update(handle, "approve", {"call": row["call"]})
        assert (await handle.result())["output"] == "done"
        found = await answers(handle)
    assert found["c0.0"] == ("success", "a.txt")
    assert found["c1.0"] == ("success", f'{{"exit_code":3,"stdout":"{tmp_path}\\n","stderr":""}}')
    assert found["c2.0"] == ("success", "one\ntwo\n")


async def test_s2_type_09_a_command_sees_none_of_the_workers_secrets(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    app = coder(tmp_path, run("env"), "done", gated=False, env={"STAGE": "test"})
    async with working(client, app) as runs:
        outcome, text = await told(runs, "coder")
    assert outcome == "success"
    assert "sk-secret" not in text
    assert "STAGE=test" in text
    assert f"HOME={tmp_path}" in text


async def test_s2_type_07_a_command_that_takes_too_long_is_killed_with_what_it_began(
    client: Client, tmp_path: Path
) -> None:
    app = coder(tmp_path, run("sleep 600 & echo $! > child; echo begun; sleep 600"), "done", gated=False, timeout=10.0)
    async with working(client, app) as runs:
        outcome, text = await told(runs, "coder")
    assert outcome == "failed"
    assert text.startswith("The command didn't end within 10 s and was killed.\nstdout: begun\n")
    await until(lambda: not alive(int((tmp_path / "child").read_text())))


async def test_s2_type_07_a_cancel_kills_what_runs(client: Client, tmp_path: Path, cache: int) -> None:
    app = coder(tmp_path, run("sleep 600 & echo $! > begun; mv begun child; sleep 600"), gated=False)
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("coder", "go")
        await until(lambda: (tmp_path / "child").exists())
        pid = int((tmp_path / "child").read_text())
        assert alive(pid)
        await cancelled(handle)
        await until(lambda: not alive(pid))
        assert "may or may not have run" in (await answers(handle))["c0.0"][1]


async def test_s2_type_07_output_is_bounded(client: Client, tmp_path: Path) -> None:
    app = coder(tmp_path, run("seq 100000; seq 5 >&2"), "done", gated=False, max_output=200)
    async with working(client, app) as runs:
        outcome, text = await told(runs, "coder")
    assert outcome == "success"
    assert "588695 characters are left out here" in text
    assert text.endswith('"stderr":"1\\n2\\n3\\n4\\n5\\n"}')
    app = coder(tmp_path, run("yes"), "done", gated=False)
    async with working(client, app) as runs:
        outcome, text = await told(runs, "coder")
    assert outcome == "failed"
    assert text.startswith("The command put out more than 10 MB and was killed.")
    assert len(text) < MAX_PAYLOAD


@pytest.mark.parametrize("command", ["echo " + "x" * 100_000, "echo \0", "echo " + "é" * 60_000], ids=len)
async def test_s2_type_07_a_command_that_no_system_takes_is_told(tmp_path: Path, command: str) -> None:
    agent = Agent(Script(run(command), "done").model, toolsets=[workspace(tmp_path, gated=False)])
    (answer,) = (
        part
        for message in (await agent.run("go")).all_messages()
        for part in message.parts
        if part.part_kind == "tool-return"
    )
    assert answer.outcome == "failed"
    assert answer.content == "A command may have 100000 bytes and no null character. Write a script and run it."


async def test_s2_type_07_a_folder_of_each_run(client: Client, tmp_path: Path) -> None:
    def own(ctx: RunContext[Any]) -> Path:
        return tmp_path / ctx.deps["folder"]

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    app = coder(own, {"write_file": {"path": "x/y", "text": "é"}}, "done", gated=False)
    async with working(client, app) as runs:
        assert await told(runs, "coder", params={"folder": "a"}) == ("success", "x/y: created")
        failure = await runs.failure("coder", "go", params={"folder": "c"})
    assert (tmp_path / "a/x/y").read_text() == "é"
    assert not (tmp_path / "b/x").exists()
    assert failure.type == "RootMissing"


async def test_s2_type_07_a_path_that_leads_out_is_told(client: Client, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/etc")
    turns = ({"read_file": {"path": "../x"}}, {"read_file": {"path": "out/passwd"}}, {"list_files": {"path": "y"}})
    async with working(client, coder(tmp_path, *turns, "done")) as runs:
        handle = await runs.start("coder", "go")
        assert (await handle.result())["output"] == "done"
        found = list((await answers(handle)).values())
    assert found == [
        ("failed", "'../x' must be relative to the root folder, without '..'."),
        ("failed", "'out/passwd': 'out' isn't a folder, or is a link, and links aren't followed."),
        ("failed", "there is no 'y'."),
    ]


async def test_a_file_is_read_in_pages(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("".join(f"line {n}\r\n" for n in range(1, 6)))
    (tmp_path / "binary").write_bytes(b"\xff\x00")
    (tmp_path / "empty").write_text("")
    turns = [{"read_file": {"path": "long", "start": 2, "lines": 2}}, {"read_file": {"path": "long", "start": 9}}]
    turns += [{"read_file": {"path": "binary"}}, {"read_file": {"path": "empty"}}]
    agent = Agent(Script(*turns, "done").model, toolsets=[workspace(tmp_path)])
    texts = [
        part.model_response_str(wrap_if_error=False)
        for message in (await agent.run("go")).all_messages()
        for part in message.parts
        if part.part_kind == "tool-return"
    ]
    assert texts == [
        "[lines 2 to 3 of 5]\nline 2\r\nline 3\r\n",
        "[there is no line 9: the file has 5]",
        "'binary' isn't text in UTF-8.",
        "",
    ]


def test_without_a_shell_there_is_no_command(tmp_path: Path) -> None:
    assert sorted(workspace(tmp_path, shell=False).tools) == ["list_files", "read_file", "write_file"]
    gates = {name: (tool.requires_approval, tool.sequential) for name, tool in workspace(tmp_path).tools.items()}
    assert gates == {
        "list_files": (False, False),
        "read_file": (False, False),
        "write_file": (True, True),
        "run_command": (True, True),
    }


WRONG: list[dict[str, Any]] = [
    *({"timeout": value} for value in (0, -1, float("nan"), float("inf"), "5", None, True)),
    *({"max_output": value} for value in (5, 1e9, "500", None)),
]


@pytest.mark.parametrize("options", WRONG)
def test_a_bound_that_is_none_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match="must be finite, more than 0, and max_output="):
        workspace(tmp_path, **options)


def test_a_long_text_loses_its_middle() -> None:
    assert bounded("x" * 10, 10) == "x" * 10
    assert bounded("a" * 50 + "b" * 60, 100) == f"{'a' * 50}\n[… 10 characters are left out here …]\n{'b' * 50}"
