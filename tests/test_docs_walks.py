"""What pages say to type is typed: the files of a page, its commands in their order, and the output that it shows."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command import ROOT, SECONDS, Done, free_port, perdure, running
from tests.fences import NAMED, fences
from tests.harness import until

COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.M)
"""A command of a `text` fence, with the lines that it prints."""
KEY = re.compile(r"\d+\.\d+-[0-9a-f]{8}")


@dataclass
class Walk:
    """A page whose files are written, and whose app is served."""

    folder: Path
    address: str

    async def type(self, line: str) -> Done:
        """Run a command of the page to its end."""
        return await perdure(*words(line), address=self.address, cwd=self.folder)


def words(line: str) -> list[str]:
    """What `perdure` is given."""
    command, *given = shlex.split(line)
    assert command == "perdure"
    return given


def commands(page: str, first: str) -> list[tuple[str, str]]:
    """The commands, with their output, of the `text` fence of a page that begins with this one."""
    (fence,) = [body for body in fences(ROOT / page, "text") if body.startswith(f"$ {first}")]
    return COMMAND.findall(fence)


@asynccontextmanager
async def served(page: str, app: str, folder: Path) -> AsyncGenerator[Walk]:
    """The named files of the page in a folder, and `perdure dev` there."""
    for body in fences(ROOT / page, "python"):
        if name := NAMED.match(body):
            (folder / name[1]).write_text(body)
    port = str(free_port())
    async with running("dev", app, "--port", port, "--headless", cwd=folder) as dev:
        await dev.line("polls")
        yield Walk(folder, f"127.0.0.1:{port}")


async def waiting(walk: Walk, printed: str) -> str:
    """The key of the call that waits, once `perdure inbox` shows what the page shows."""
    shown = Done(0, "", "")

    async def there() -> bool:
        nonlocal shown
        shown = await walk.type("perdure inbox")
        return KEY.search(shown.out) is not None

    await until(there, seconds=SECONDS)
    assert [line.split() for line in shown.out.splitlines()] == [line.split() for line in printed.splitlines()]
    return KEY.findall(shown.out)[0]


async def approved(walk: Walk, typed: list[tuple[str, str]]) -> Done:
    """The run of a page that is started, waits, and is approved: how it ended."""
    (start, _), (_, inbox), (approve, printed), *after = typed
    async with running(*words(start), address=walk.address, cwd=walk.folder) as run:
        key = await waiting(walk, inbox)
        done = await walk.type(KEY.sub(key, approve))
        assert done.out == KEY.sub(key, printed)
        ended = await run.end()
    for line, _ in after:
        assert (await walk.type(line)).out
    return ended


async def test_a_person_in_the_loop_of_the_readme(tmp_path: Path) -> None:
    async with served("README.md", "gated:app", tmp_path) as walk:
        ended = await approved(walk, commands("README.md", "perdure start weather"))
    assert (ended.code, ended.out) == (0, "It is 4 degrees.\n")


async def test_an_mcp_server(tmp_path: Path) -> None:
    (_, dev), *typed = commands("docs/mcp.md", "perdure dev clerk:app")
    assert dev == ""
    async with served("docs/mcp.md", "clerk:app", tmp_path) as walk:
        ended = await approved(walk, typed)
    assert (ended.code, ended.out) == (0, '{"read":"Call Ann.","delete":"deleted: Call Ann."}\n')


@asynccontextmanager
async def plain_worker(file: str, walk: Walk) -> AsyncGenerator[None]:
    """A worker of a page, ended by its own process id. Its address is the one that the page names."""
    path = walk.folder / file
    assert "localhost:7233" in path.read_text()
    path.write_text(path.read_text().replace("localhost:7233", walk.address))
    process = await asyncio.create_subprocess_exec(sys.executable, file, cwd=walk.folder)
    try:
        yield
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize(
    ("page", "app"),
    [("docs/temporal-tools.md", "clerk:app"), ("docs/contracts.md", "shop:app")],
    ids=["temporal", "contract"],
)
async def test_a_worker_of_others(page: str, app: str, tmp_path: Path) -> None:
    _, (worker, _), (start, printed) = commands(page, f"perdure dev {app}")
    async with AsyncExitStack() as stack:
        walk = await stack.enter_async_context(served(page, app, tmp_path))
        await stack.enter_async_context(plain_worker(worker.removeprefix("python "), walk))
        done = await walk.type(start)
    assert (done.code, done.out) == (0, printed)
