"""The Compose file, the Dockerfile and what they name: all that can be checked with no Docker engine."""

import asyncio
import json
import os
import re
import shutil
import sys
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel
from temporalio import workflow
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

ROOT = Path(__file__).parents[1]
COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = (ROOT / "Dockerfile").read_text()
HEALTH = ROOT / "deploy" / "worker_health.py"

PINNED = re.compile(r"[a-z0-9./_-]+:\d+\.\d+[a-zA-Z0-9._-]*")
"""A tag that names a version at least down to its minor part."""
SECRET = re.compile(r"(?i)password|passwd|pwd|secret|token|api_?key|private_?key|credential")
FROM_OUTSIDE = re.compile(r"\$\{[A-Z][A-Z0-9_]*:\?[^}]+\}")
"""A value that must come from the environment: Compose stops with the message if it is absent or empty."""


class Dependency(BaseModel):
    condition: str


class Check(BaseModel):
    test: list[str]


class Service(BaseModel):
    image: str
    build: str | None = None
    command: list[str] = []
    depends_on: dict[str, Dependency] = {}
    environment: dict[str, str] = {}
    healthcheck: Check | None = None
    ports: list[str] = []
    privileged: bool = False
    restart: str = "no"
    volumes: list[str] = []


class Source(BaseModel):
    file: str


class Project(BaseModel):
    services: dict[str, Service]
    configs: dict[str, Source]
    volumes: dict[str, Any]


PROJECT = Project.model_validate(yaml.safe_load(COMPOSE.read_text()))
SERVICES = PROJECT.services
DEPENDENCIES = [(name, on, d.condition) for name, service in SERVICES.items() for on, d in service.depends_on.items()]

each_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES.keys())


def _instructions(name: str) -> list[str]:
    """The arguments of each `name` instruction of the Dockerfile, continued lines joined."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return [line.split(maxsplit=1)[1] for line in joined.splitlines() if line.startswith(f"{name} ")]


def _copied() -> list[str]:
    return [source for arguments in _instructions("COPY") for source in arguments.split()[:-1]]


def _sent_to_the_engine(path: str) -> bool:
    """Whether .dockerignore lets `path` into the build: of the patterns matching it or a parent, the last one wins."""
    sent = True
    names = [path, *(str(parent) for parent in PurePosixPath(path).parents)]
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.strip().removeprefix("!").removeprefix("**/")
        if line.strip() and not line.startswith("#"):
            anywhere = line.removeprefix("!").startswith("**/")
            parts = [PurePosixPath(name).name for name in names] if anywhere else names
            if any(fnmatch(part, pattern) for part in parts):
                sent = line.startswith("!")
    return sent


def test_file_is_valid_by_the_compose_specification() -> None:
    schema = json.loads((ROOT / "tests" / "data" / "compose-spec.json").read_text())
    Draft202012Validator.check_schema(schema)
    errors = Draft202012Validator(schema).iter_errors(yaml.safe_load(COMPOSE.read_text()))  # pyright: ignore[reportUnknownMemberType]
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


@each_service
def test_image_has_a_tag_and_what_is_pulled_is_pinned(service: Service) -> None:
    name, _, tag = service.image.rpartition(":")
    assert name
    assert tag != "latest"
    assert service.build or PINNED.fullmatch(service.image)


def test_temporals_server_and_schema_tool_have_one_version() -> None:
    tags = {
        s.image.rpartition(":")[2]
        for s in SERVICES.values()
        if s.image.startswith(("temporalio/server", "temporalio/admin"))
    }
    assert len(tags) == 1


@pytest.mark.parametrize(("name", "on", "condition"), DEPENDENCIES)
def test_dependency_is_waited_for(name: str, on: str, condition: str) -> None:
    if condition == "service_completed_successfully":
        assert SERVICES[on].restart == "no", f"{name} waits for the end of {on}, which would be started again"
    else:
        assert condition == "service_healthy"
        assert SERVICES[on].healthcheck, f"{name} waits until {on} is healthy, which nothing checks"


@each_service
def test_what_stays_up_has_a_health_check(service: Service) -> None:
    assert (service.restart != "no") == (service.healthcheck is not None)


@each_service
def test_secrets_come_from_outside(service: Service) -> None:
    for name, value in service.environment.items():
        assert not SECRET.search(name) or FROM_OUTSIDE.fullmatch(value), f"{name} is written in the file"
        assert not re.search(r"://[^/\s]+:[^/\s]+@", value), f"{name} holds a password"


def test_image_holds_no_secrets() -> None:
    assert [line for line in _instructions("ENV") + _instructions("ARG") if SECRET.search(line)] == []


@each_service
def test_ports_are_open_to_this_machine_only(service: Service) -> None:
    assert all(port.startswith("127.0.0.1:") for port in service.ports)
    assert not service.privileged


def test_files_and_volumes_that_are_named_exist() -> None:
    assert [source.file for source in PROJECT.configs.values() if not (ROOT / source.file).is_file()] == []
    mounted = {volume.partition(":")[0] for service in SERVICES.values() for volume in service.volumes}
    assert mounted == set(PROJECT.volumes)


def test_search_attributes_are_registered() -> None:
    script = (ROOT / "deploy" / "namespace.sh").read_text()
    assert set(re.findall(r"--name (\w+) --type Keyword", script)) == {"AgentName", "AgentStatus", "AgentWaiting"}


def test_worker_command_is_one_that_perdure_has() -> None:
    from typer.core import TyperGroup
    from typer.main import get_command

    from perdure.cli import app

    program, name, target = SERVICES["worker"].command
    commands = get_command(app)
    assert isinstance(commands, TyperGroup)
    assert program == "perdure"
    assert name in commands.commands
    module, _, attribute = target.partition(":")
    assert attribute == "app"
    assert ROOT.joinpath(*module.split(".")).with_suffix(".py").is_file()


def test_health_check_asks_for_the_queue_of_the_worker() -> None:
    from perdure.contracts import TASK_QUEUE

    check = SERVICES["worker"].healthcheck
    assert check
    assert check.test == ["CMD", "python", HEALTH.name, TASK_QUEUE]


def test_compose_and_image_start_the_same_worker() -> None:
    (command,) = _instructions("CMD")
    assert json.loads(command) == SERVICES["worker"].command


def test_base_image_is_slim_and_pinned() -> None:
    (base,) = _instructions("FROM")
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", base)


def test_image_does_not_run_as_root() -> None:
    (user,) = _instructions("USER")
    uid, _, gid = user.partition(":")
    assert int(uid) > 0
    assert int(gid) > 0
    after = DOCKERFILE.partition("\nUSER ")[2]
    assert not re.search(r"^(RUN|COPY|ADD) ", after, re.MULTILINE)


def test_image_installs_this_checkout_with_the_pinned_versions() -> None:
    (install,) = [line for line in _instructions("RUN") if "pip install" in line]
    assert re.search(r"--constraint constraints\.txt '\.\[[a-z,-]+\]'", install)
    assert {"pyproject.toml", "constraints.txt", "perdure"} <= set(_copied())


@pytest.mark.parametrize("path", _copied())
def test_copied_path_exists_and_is_sent_to_the_engine(path: str) -> None:
    assert (ROOT / path).exists()
    assert _sent_to_the_engine(path)


@pytest.mark.parametrize("path", [".venv/bin/python", ".git/config", ".env", "support.db", "perdure/__pycache__/x.pyc"])
def test_path_stays_out_of_the_build(path: str) -> None:
    assert not _sent_to_the_engine(path)


@workflow.defn
class Nothing:
    @workflow.run
    async def run(self) -> None: ...


async def _health(client: Client) -> tuple[int | None, str]:
    env = os.environ | {
        "TEMPORAL_ADDRESS": client.service_client.config.target_host,
        "TEMPORAL_NAMESPACE": client.namespace,
    }
    check = await asyncio.create_subprocess_exec(
        sys.executable, HEALTH, "perdure", env=env, stderr=asyncio.subprocess.PIPE
    )
    _, stderr = await check.communicate()
    return check.returncode, stderr.decode()


async def test_worker_is_healthy_only_while_it_polls() -> None:
    temporal = shutil.which("temporal", path=Path(sys.executable).parent)
    start = WorkflowEnvironment.start_local(dev_server_existing_path=temporal)  # pyright: ignore[reportUnknownMemberType]
    async with await start as environment:
        client = environment.client
        code, message = await _health(client)
        assert code == 1
        assert "polled by: nobody" in message

        runner = UnsandboxedWorkflowRunner()
        async with Worker(client, task_queue="perdure", workflows=[Nothing], workflow_runner=runner):
            async with asyncio.timeout(30):
                while (await _health(client))[0] != 0:
                    pass
