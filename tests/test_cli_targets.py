"""The app that a command names: which are refused and how, and what `perdure check` prints of one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import DEMO, perdure


@pytest.mark.parametrize("command", ["worker", "check"])
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("perdure.cli.demo_app", "'perdure.cli.demo_app' is not of the form module:attribute"),
        ("no_such_module:app", "there is no module 'no_such_module'"),
        ("perdure.cli.demo_app:agent", "'perdure.cli.demo_app:agent' is Agent, not an App. Apps in"),
        ("wrong_app:app", "an agent needs a name"),
        (
            "perdure.cli.demo_app:application",
            "perdure.cli.demo_app has no 'application'. Apps in perdure.cli.demo_app: ",
        ),
        ("./agents.py:app", "did you mean agents:app?"),
    ],
)
async def test_wrong_target_or_declaration_is_one_line(
    tmp_path: Path, address: str, command: str, target: str, message: str
) -> None:
    lines = ["from perdure import App", "from pydantic_ai import Agent", "app = App(agents=[Agent('test')])"]
    (tmp_path / "wrong_app.py").write_text("\n".join(lines))
    done = await perdure(command, target, address=address, cwd=tmp_path)
    assert (done.code, len(done.err.splitlines())) == (2, 1), done.err
    assert message in done.err


@pytest.mark.parametrize(
    ("command", "line", "frames", "error"),
    [
        ("check", "import nothing", [], "ModuleNotFoundError: No module named 'nothing'"),
        ("worker", "1 / 0", [], "ZeroDivisionError: division by zero"),
        ("dev", "def (", [], "SyntaxError: invalid syntax"),
        ("check", "import json; json.loads('{')", ["__init__.py", "decoder.py", "decoder.py"], "json.decoder.JSON"),
    ],
)
async def test_traceback_of_the_users_own_module_begins_there(
    tmp_path: Path, command: str, line: str, frames: list[str], error: str
) -> None:
    (tmp_path / "part.py").write_text(line)
    (tmp_path / "users_app.py").write_text("import part")
    done = await perdure(command, "users_app:app", cwd=tmp_path)
    assert done.code == 1
    first, *rest = done.err.splitlines()
    assert first == "Traceback (most recent call last):"
    assert [Path(row.split('"')[1]).name for row in rest if row.startswith("  File ")] == [
        "users_app.py",
        "part.py",
        *frames,
    ]
    assert rest[-1].startswith(error)


async def test_syntax_error_of_the_app_itself_names_its_place(tmp_path: Path) -> None:
    (tmp_path / "users_app.py").write_text("def (")
    done = await perdure("check", "users_app:app", cwd=tmp_path)
    assert done.code == 1
    first, *_, last = done.err.splitlines()
    assert (first.strip(), last) == (f'File "{tmp_path}/users_app.py", line 1', "SyntaxError: invalid syntax")


async def test_check_prints_agents_and_tools_with_their_policies() -> None:
    done = await perdure("check", DEMO)
    assert done.code == 0, done.err
    for text in ("demo 1", "function:demo", "calculate", "expression: string", "Work out a sum", "safe", "10 s"):
        assert text in done.out
    (agent,) = json.loads((await perdure("check", DEMO, "--json")).out)["agents"]
    assert (agent["name"], agent["output"], agent["limits"]) == ("demo", "str", {"turn_requests": 50})
    tools = {tool["name"]: tool for tool in agent["tools"]}
    assert list(tools) == ["calculate", "clock"]
    assert (tools["clock"]["effect"], tools["clock"]["attempts"], tools["clock"]["timeout"]) == ("safe", 5, 10)
    assert tools["clock"]["schema"]["required"] == ["zone"]
