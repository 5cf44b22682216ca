"""The `perdure` command, as a process of its own, against a real server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import get_args

import pytest
from pydantic_ai import Agent
from temporalio.client import Client

from perdure.cli import demo_app
from perdure.client import RunStatus
from tests.command import DEMO, free_port, new_id, perdure, running
from tests.harness import working

PROMPT = "What is 17 * 23, and what time is it in UTC?"


@pytest.fixture
async def queue(client: Client) -> AsyncIterator[str]:
    """A task queue on which the demo agent is served."""
    async with working(client, demo_app.app) as runs:
        yield runs.task_queue


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_help_imports_nothing_heavy() -> None:
    code = """
import sys
from perdure.cli import main
try:
    main(["--help"])
finally:
    print("imported", sorted({"pydantic_ai", "temporalio", "pydantic"} & set(sys.modules)))
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "imported []"
    for name in ("dev", "worker", "start", "show", "list", "check", "TEMPORAL_ADDRESS", "4 the run failed"):
        assert name in done.stdout


async def test_client_commands_name_their_environment_variables() -> None:
    for name in ("worker", "start", "show", "list"):
        done = await perdure(name, "--help")
        assert done.code == 0
        for variable in ("TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE"):
            assert variable in done.out


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_its_extra_the_command_says_what_to_install(missing: str) -> None:
    done = python(f"import sys; sys.modules[{missing!r}] = None; from perdure.cli import main; main(['--help'])")
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["perdure: the command line needs typer and rich: pip install 'perdure[cli]'"]


async def test_start_shows_the_run_on_stderr_and_its_output_on_stdout(address: str, queue: str) -> None:
    done = await perdure("start", "demo", PROMPT, "--task-queue", queue, address=address)
    assert done.code == 0, done.err
    assert done.out.startswith("17 * 23 is 391. It is ")
    labels = [line.split()[0] for line in done.err.splitlines()]
    assert labels == ["run", "user", "call", "call", "returned", "returned", "model"]
    assert 'calculate {"expression": "17 * 23"}' in done.err
    assert "calculate → 391" in done.err


async def test_start_prints_the_whole_result_as_json(address: str, queue: str) -> None:
    done = await perdure("start", "demo", "2 + 3", "--json", "--task-queue", queue, address=address)
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["output"] == "2 + 3 is 5."
    assert (result["turns"], result["steps"], result["usage"]["tool_calls"]) == (1, 2, 1)


async def test_start_without_waiting_prints_the_id_and_show_finds_the_run(address: str, queue: str) -> None:
    id = new_id()
    started = await perdure("start", "demo", PROMPT, "--no-wait", "--id", id, "--task-queue", queue, address=address)
    assert (started.code, started.out, started.err) == (0, f"{id}\n", "")
    async with running("show", id, address=address) as early:  # the run may be going on
        assert (await early.end()).code == 0
    again = await perdure("start", "demo", PROMPT, "--id", id, "--task-queue", queue, address=address)
    assert again.code == 1
    assert again.err == f"Error: there is a run {id!r} already: choose another id, or see `perdure show {id}`"


async def test_show_prints_an_ended_run(address: str, client: Client, queue: str) -> None:
    id = new_id()
    await perdure("start", "demo", "2 + 3", "--id", id, "--task-queue", queue, address=address)
    done = await perdure("show", id, address=address)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith(f"run       {id} · completed · started ")
    assert lines[1] == "agent     demo · 1 · function:demo"
    assert lines[4:] == [
        "user      2 + 3",
        'call      calculate {"expression": "2 + 3"}',
        "returned  calculate → 5",
        "model     2 + 3 is 5.",
        "output    2 + 3 is 5.",
    ]
    shown = json.loads((await perdure("show", id, "--json", address=address)).out)
    assert (shown["status"], shown["output"], shown["view"]["state"]) == ("completed", "2 + 3 is 5.", "done")
    assert [entry["kind"] for entry in shown["transcript"]] == ["start", "user", "response", "outcomes", "response"]


async def test_list_finds_runs_of_an_agent(address: str, queue: str) -> None:
    id = new_id()
    await perdure("start", "demo", "2 + 3", "--id", id, "--task-queue", queue, address=address)
    listed = json.loads(
        (await perdure("list", "--agent", "demo", "--status", "completed", "--json", address=address)).out
    )
    assert ("demo", "completed") in {(run["agent"], run["status"]) for run in listed if run["id"] == id}
    assert id in (await perdure("list", address=address)).out
    assert (await perdure("list", "--agent", "nobody's", address=address)).out == "no runs\n"


async def test_list_shows_a_run_that_no_worker_has_begun_without_its_agent(address: str, client: Client) -> None:
    id = new_id()
    await perdure("start", "demo", "hi", "--id", id, "--no-wait", "--task-queue", id, address=address)
    listed = await perdure("list", "--status", "RUNNING", address=address)
    (row,) = [line.split() for line in listed.out.splitlines() if line.startswith(id)]
    assert row[1:3] == ["?", "running"]
    await client.get_workflow_handle(id).terminate()


async def test_unknown_status_names_the_known_ones(address: str) -> None:
    done = await perdure("list", "--status", "bogus", address=address)
    assert (done.code, done.out) == (2, "")
    known = ", ".join(repr(status) for status in get_args(RunStatus))
    assert f"'bogus' is not one of {known}" in done.err


@pytest.mark.parametrize(
    ("agent", "prompt", "message"), [("demo", "", "the prompt is empty"), ("", "hi", "the agent is empty")]
)
async def test_empty_prompt_or_agent_is_wrong_usage(agent: str, prompt: str, message: str) -> None:
    done = await perdure("start", agent, prompt, "--no-wait")
    assert (done.code, done.out) == (2, "")
    assert message in done.err


async def test_unknown_agent_fails_the_run_naming_the_known_ones(address: str, queue: str) -> None:
    id = new_id()
    done = await perdure("start", "nobody", "hi", "--id", id, "--task-queue", queue, address=address)
    assert (done.code, done.out) == (4, "")
    assert done.last == "UnknownAgent: no agent is named 'nobody'. Known agents: ['demo']"
    shown = await perdure("show", id, address=address)
    assert shown.code == 0
    assert "failed    UnknownAgent: no agent is named 'nobody'." in shown.out


async def test_interrupted_start_says_that_the_run_goes_on(address: str) -> None:
    id, queue = new_id(), new_id()
    async with running("start", "demo", "hi", "--id", id, "--task-queue", queue, address=address) as command:
        assert await command.line("no worker polls") == (
            f"waiting   no worker polls task queue {queue!r} at {address} (namespace 'default'): start one with "
            f"`perdure worker MODULE:APP --task-queue {queue}`, the run goes on then (Ctrl-C ends only this command)"
        )
        command.send(signal.SIGINT)
        done = await command.end()
    assert done.code == 130
    assert done.last == f"run       goes on without you: perdure show {id}"
    assert [
        run["status"] for run in json.loads((await perdure("list", "--json", address=address)).out) if run["id"] == id
    ] == ["running"]


@pytest.mark.parametrize("command", [["start", "demo", "hi"], ["show", "x"], ["list"], ["worker", DEMO]])
async def test_missing_server_is_one_line(command: list[str]) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    done = await perdure(*command, address=nowhere)
    assert (done.code, done.out) == (3, "")
    (line,) = done.err.splitlines()
    assert line.startswith(f"Error: no Temporal server answers at '{nowhere}' (Connection refused). Start one with")


async def test_missing_server_never_crashes_the_interpreter() -> None:
    """One in four did without `pause_at_exit`."""
    nowhere = f"127.0.0.1:{free_port()}"
    assert {(await perdure("list", address=nowhere)).code for _ in range(12)} == {3}


async def test_address_and_namespace_options_win_over_the_environment(address: str) -> None:
    done = await perdure("list", "--address", address, "--namespace", "nowhere", address="127.0.0.1:1")
    assert (done.code, done.err) == (1, "Error: the server has no namespace 'nowhere': set TEMPORAL_NAMESPACE")


async def test_run_that_is_not_there_is_one_line(address: str) -> None:
    done = await perdure("show", "nothing", address=address)
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "there is no run 'nothing'" in done.err


async def test_params_must_be_json(address: str) -> None:
    done = await perdure("start", "demo", "hi", "--params", "{", address=address)
    assert done.code == 2
    assert "--params isn't JSON" in done.err


async def test_version_names_what_it_runs_on() -> None:
    done = await perdure("--version")
    under = f"temporalio {version('temporalio')}, pydantic-ai-slim {version('pydantic-ai-slim')}"
    python = ".".join(map(str, sys.version_info[:3]))
    assert (done.code, done.out, done.err) == (0, f"perdure {version('perdure')} ({under}, Python {python})\n", "")


async def test_worker_serves_until_sigterm(address: str) -> None:
    queue = new_id()
    async with running("worker", DEMO, "--task-queue", queue, "--grace", "5", address=address) as worker:
        line = await worker.line("polls")
        assert line == f"perdure: worker polls task queue {queue!r} at {address} (namespace 'default'), agents: demo"
        done = await perdure("start", "demo", "2 + 3", "--task-queue", queue, address=address)
        assert (done.code, done.out) == (0, "2 + 3 is 5.\n")
        worker.send(signal.SIGTERM)
        ended = await worker.end()
    assert ended.code == 0
    assert ended.last == "perdure: worker has stopped"


def test_demo_agent_answers_as_a_plain_agent_too() -> None:
    agent: Agent[object, str] = demo_app.agent
    assert agent.run_sync("What is (2 + 3) * 4?").output == "(2 + 3) * 4 is 20."
    assert "is in" not in agent.run_sync("Hello").output
    assert agent.run_sync("1 / 0").output == "I could not find out about 1 / 0."
