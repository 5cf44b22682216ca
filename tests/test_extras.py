"""Extras: the README's table has each of them, hints name those there are, and a library that is missing is told."""

from __future__ import annotations

import asyncio
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.command import ROOT, python

DECLARED: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
PROVIDERS = {"openai", "anthropic", "google", "bedrock", "groq", "mistral"}
HINT = re.compile(r"perdure\[([\w,-]+)\]")
MISSING = {
    ("mcp", "fastmcp"): "mcp",
    ("mcp", "mcp"): "mcp",
    ("apply_patch", "agents"): "openai-agents",
}
"""The extra, by module of perdure and library; tests/test_adapters.py has those of the adapters."""
HIDDEN = {"mcp": "mcp.py", "apply_patch": "agents.py"}
"""By module of perdure: a file of a user that takes the place of its library."""


def parts(extra: str) -> set[str]:
    """The extras of perdure that an extra is made of."""
    return {name for line in DECLARED[extra] for names in HINT.findall(line) for name in names.split(",")}


def test_all_is_all_but_the_providers_of_models() -> None:
    assert parts("all") == set(DECLARED) - PROVIDERS - {"all", "dev"}


def test_the_readme_has_each_extra() -> None:
    table = re.findall(r"^\| (`.+?`) \| .* \|$", (ROOT / "README.md").read_text(), re.M)
    assert set(DECLARED) - {"all", "dev"} <= set(re.findall(r"`([\w-]+)`", " ".join(table)))


def test_hints_name_extras_that_exist() -> None:
    files = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "perdure").rglob("*.py")]
    named = {name for file in files for names in HINT.findall(file.read_text()) for name in names.split(",")}
    assert named >= {"cli", "dev-server", "tokens", "s3", "mcp", "openai-agents"}
    assert named - set(DECLARED) - {"NAME"} == set()


async def test_pip_adds_an_extra_to_what_is_installed(tmp_path: Path) -> None:
    """As the hints say, without an index: it isn't on one."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "perdure[cli,mcp]"]
    process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path)
    assert await process.wait() == 0


@pytest.mark.parametrize(("module", "library"), MISSING, ids="-".join)
async def test_a_missing_library_is_told_with_the_extra(module: str, library: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None; import perdure.toolsets.{module}"
    status, error = await python("-c", code)
    assert status == 1
    last = error.splitlines()[-1]
    assert last.startswith(f"ImportError: perdure.toolsets.{module} needs ")
    assert f"pip install 'perdure[{MISSING[module, library]}]'" in last


@pytest.mark.parametrize("module", HIDDEN)
async def test_a_file_that_hides_the_library_is_named(module: str, tmp_path: Path) -> None:
    (tmp_path / HIDDEN[module]).write_text("")
    (tmp_path / "main.py").write_text(f"import perdure.toolsets.{module}")
    status, error = await python(str(tmp_path / "main.py"))
    assert status == 1
    assert re.search(rf"a file (\S+ or )?{re.escape(HIDDEN[module])} of yours hides", error.splitlines()[-1])
