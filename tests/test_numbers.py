"""Text, `None` or a truth value in place of a number is told like a number out of range."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent

from perdure import DeclarationError, DurableAgent, TaskQueue, ToolPolicy
from perdure.numbers import positive, whole
from perdure.toolsets.mcp import MCPServer
from tests.scripts import Script


@pytest.mark.parametrize("name", ["timeout", "heartbeat", "schedule_to_start", "backoff", "cancel_grace", "wait"])
@pytest.mark.parametrize("value", ["5", True, float("inf")])
def test_a_time_of_a_policy_is_a_number(name: str, value: Any) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(DeclarationError, match=f"^{name}={value!r} must be a finite number of seconds, more than 0$"):
        ToolPolicy(**options)


@pytest.mark.parametrize("name", ["attempts", "max_result_bytes"])
@pytest.mark.parametrize("value", ["5", 1.5])
def test_a_count_of_a_policy_is_a_whole_number(name: str, value: Any) -> None:
    options: dict[str, Any] = {name: value, "effect": "safe"}
    with pytest.raises(DeclarationError, match=f"^{name}={value!r} must be"):
        ToolPolicy(**options)


@pytest.mark.parametrize("name", ["model_timeout", "model_attempts", "max_parallel_calls"])
@pytest.mark.parametrize("value", ["5", None])
def test_a_number_of_an_agent_is_one(name: str, value: Any) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(DeclarationError, match=f"{name}={value!r}.* must be"):
        DurableAgent(Agent(Script("x").model, name="sales"), **options)


@pytest.mark.parametrize("name", ["max_activities_per_second", "max_task_queue_activities_per_second"])
def test_a_rate_is_a_number(name: str) -> None:
    options: dict[str, Any] = {name: "5"}
    with pytest.raises(DeclarationError, match=f"{name}='5' must be a finite number, more than 0"):
        TaskQueue(**options)


@pytest.mark.parametrize("name", ["ttl", "connect_timeout"])
def test_a_time_of_an_mcp_server_is_a_number(name: str) -> None:
    options: dict[str, Any] = {name: "5"}
    with pytest.raises(DeclarationError, match=f"{name}='5' must be a finite time"):
        MCPServer("http://127.0.0.1:1/mcp", id="x", **options)


def test_numbers_are_taken() -> None:
    assert [positive(value) for value in (1, 0.5, 0, -1, float("nan"), None)] == [True, True, *[False] * 4]
    assert [whole(value) for value in (1, 2, 0, 1.0, True)] == [True, True, *[False] * 3]
