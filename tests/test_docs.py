"""Every code fence of the README and of docs/ runs. Output is in `text` fences."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.command import ROOT, free_port, perdure, running
from tests.fences import FENCE, NAMED, fences

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LANGUAGES = {"python", "bash", "sh", "text", "json", "yaml", ""}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_fences_are_of_known_languages(page: Path) -> None:
    used = {language for language, _ in FENCE.findall(page.read_text())}
    assert used <= LANGUAGES
    assert "" not in used, "a fence without a language is never run"


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "cli.md"], ids=lambda page: page.name)
async def test_python_fences_run(page: Path, tmp_path: Path) -> None:
    for body in fences(page, "python"):
        name = NAMED.match(body)
        file = tmp_path / (name[1] if name else "fence.py")  # a file, since some libraries read a function's source
        file.write_text(body)
        started = (
            ["-c", f"import {file.stem}"] if "__main__" in body else [file.name]
        )  # tests/test_docs_walks.py has it run
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", *started),
            cwd=tmp_path,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, error = await process.communicate()
        assert process.returncode == 0, error.decode()
        assert "Warning" not in error.decode(), "FastMCP shows its own whatever `-W` says"


async def test_the_quick_start_of_the_readme_works(tmp_path: Path) -> None:
    readme = ROOT / "README.md"
    (weather,) = [body for body in fences(readme, "python") if body.startswith("# weather.py")]
    (tmp_path / "weather.py").write_text(weather)
    dev, start, temporal, chat = fences(readme, "bash")
    port = str(free_port())
    environment = {
        **os.environ,
        "TEMPORAL_ADDRESS": f"127.0.0.1:{port}",
        "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}",
    }
    assert dev.strip() == "perdure dev weather:app"
    async with running(*dev.split()[1:], "--port", port, "--headless", cwd=tmp_path) as server:
        await server.line("polls")
        for script in (start, temporal, chat):
            process = await asyncio.create_subprocess_exec(
                *("bash", "-euc", script), cwd=tmp_path, env=environment, stdout=asyncio.subprocess.PIPE
            )
            out, _ = await process.communicate()
            assert process.returncode == 0, script
            assert "It is 4 degrees." in out.decode()


async def test_the_readme_names_commands_that_exist() -> None:
    named = set(re.findall(r"`perdure (\w+)", " ".join(page.read_text() for page in PAGES)))
    listed = (await perdure("--help")).out
    assert named
    assert {name for name in named if name not in listed} == set()


async def test_the_readme_names_targets_that_exist() -> None:
    targets = set(re.findall(r"`make (\w+)`", " ".join(page.read_text() for page in PAGES)))
    makefile = (ROOT / "Makefile").read_text()
    assert targets
    assert {target for target in targets if f"\n{target}:" not in makefile} == set()
