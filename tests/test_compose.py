"""The Compose file and what it names: all that can be checked with no Docker engine."""

import asyncio
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from temporalio import workflow
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.command import ROOT
from tests.compose_file import COMPOSE, PROJECT, SECRET, SERVICES, Service

HEALTH = ROOT / "deploy" / "worker_health.py"

PINNED = re.compile(r"[a-z0-9./_-]+:\d+\.\d+[a-zA-Z0-9._-]*")
"""A tag that names a version at least down to its minor part."""

FROM_OUTSIDE = re.compile(r"\$\{[A-Z][A-Z0-9_]*:\?[^}]+\}")
"""A value that must come from the environment: Compose stops with the message if it is absent or empty."""

DEPENDENCIES = [(name, on, d.condition) for name, service in SERVICES.items() for on, d in service.depends_on.items()]

each_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES.keys())


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
