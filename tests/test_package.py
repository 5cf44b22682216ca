"""What the package is made of: the wheel, the import arrows, and what importing it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import perdure

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "perdure"
ARROWS: dict[str, set[str]] = {
    "contracts": {"errors"},
    "errors": set(),
    "context": set(),
    "workflows": {"contracts", "errors"},
    "schemas": {"contracts", "errors"},
    "names": {"errors"},
    "numbers": set(),
    "threads": set(),
    "typed": {"errors"},
    "policy": {"contracts", "errors", "names", "numbers", "typed"},
    "queues": {"agent", "checks", "errors", "names", "numbers", "toolsets", "typed"},
    "agent": {"contracts", "errors", "numbers", "policy", "typed"},
    "tokens": {"contracts", "errors"},
    "webhook": {"contracts", "errors"},
    "capabilities": {"contracts", "errors"},
    "listing": {"toolsets"},
    "native": {"capabilities", "listing"},
    "searching": {"agent", "capabilities", "errors", "listing", "native"},
    "checks": {
        *("agent", "capabilities", "contracts", "errors", "listing", "names", "policy", "schemas", "searching"),
        *("toolsets", "typed"),
    },
    "toolsets": {"contracts", "errors", "agent", "context", "names", "numbers", "policy", "schemas", "typed"},
    "delegates": {"agent", "checks", "contracts", "errors", "toolsets"},
    "app": {"agent", "checks", "contracts", "delegates", "errors", "queues", "toolsets", "typed"},
    "activities": {
        *("agent", "app", "capabilities", "checks", "context", "contracts", "errors", "native"),
        *("payloads", "policy", "schemas", "toolsets"),
    },
    "payloads": {"contracts", "errors"},
    "converter": {"contracts", "errors", "payloads"},
    "client": {"contracts", "converter", "errors"},
    "worker": {
        "activities",
        "agent",
        "app",
        "cli",
        "contracts",
        "converter",
        "errors",
        "queues",
        "threads",
        "workflows",
    },
}
"""What each part may import of perdure, beside itself. `cli` and `__init__` may import everything, lazily."""
WORKFLOW_IMPORTS = {"temporalio", "perdure", *sys.stdlib_module_names}


def imports(path: Path) -> set[str]:
    """The modules a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names if node.module == "perdure" else {node.module}
    return found


def modules(part: str) -> list[Path]:
    """The files of a part of the package."""
    folder = PACKAGE / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{part}.py"]


@pytest.mark.parametrize("part", ARROWS)
def test_import_arrows_hold(part: str) -> None:
    for path in modules(part):
        used = {name.split(".")[1] for name in imports(path) if name.startswith("perdure.")}
        assert used <= ARROWS[part] | {part}, f"{path.relative_to(ROOT)} imports {used - ARROWS[part] - {part}}"


def test_every_part_has_its_arrows() -> None:
    parts = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert parts - {"__init__", "__pycache__", "cli", "dev", "testing"} == set(ARROWS)


def test_no_test_needs_another_test() -> None:
    """What two of them share is in a module of its own: tests are run by several processes."""
    for path in (ROOT / "tests").rglob("*.py"):
        assert not {name for name in imports(path) if name.startswith("tests.test_")}, path.name


def test_workflows_import_nothing_of_users_or_of_pydantic_ai() -> None:
    for path in modules("workflows"):
        tops = {name.split(".")[0] for name in imports(path)}
        assert tops <= WORKFLOW_IMPORTS, f"{path.name} imports {tops - WORKFLOW_IMPORTS}"


@pytest.mark.parametrize("path", modules("workflows"), ids=lambda path: path.name)
def test_workflows_use_nothing_that_differs_on_replay(path: Path) -> None:
    """The worker runs without Temporal's sandbox, so what that would refuse is refused here (replays do use it)."""
    tree = ast.parse(path.read_text())
    found = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Name)}
    assert not found & {
        "datetime.now",
        "datetime.utcnow",
        "date.today",
        "open",
        "print",
        "set",
        "frozenset",
        "id",
        "hash",
    }
    tops = {name.split(".")[0] for name in imports(path)}
    assert not tops & {"random", "time", "uuid", "os", "threading", "socket", "secrets", "subprocess", "pathlib"}
    values = [node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    shared = [ast.unparse(value) for value in values if isinstance(value, ast.Dict | ast.List | ast.Set)]
    assert not shared, "module state would be shared by all runs of a worker"


@pytest.mark.parametrize("module", ["perdure", "perdure.workflows.agent", "perdure.client", "perdure.contracts"])
def test_light_modules_import_no_pydantic_ai(module: str) -> None:
    code = f"import sys, {module}; sys.exit('pydantic_ai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names_are_what_is_promised() -> None:
    assert sorted(perdure.__all__) == perdure.__all__
    for name in perdure.__all__:
        assert getattr(perdure, name).__doc__, f"{name} has no docstring"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = perdure.nothing


def test_wheel_holds_perdure_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"perdure"}
    assert list(tmp_path.glob("*.tar.gz"))


@pytest.mark.parametrize("link", ["workflows", "activities", "toolsets", "worker.py"])
def test_root_links_lead_into_the_package(link: str) -> None:
    assert (ROOT / link).is_symlink()
    assert (ROOT / link).resolve() == PACKAGE / link
