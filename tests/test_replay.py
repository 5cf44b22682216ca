"""Every recorded history replays with today's workflow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory

from tests.harness import replay

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))


def test_there_are_histories() -> None:
    assert len(HISTORIES) >= 8


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_history_replays(path: Path) -> None:
    text = path.read_text()  # noqa: ASYNC240
    started = json.loads(text)["events"][0]["workflowExecutionStartedEventAttributes"]
    history = WorkflowHistory.from_json(started["workflowId"], text)  # the id matters: tokens are bound to it
    assert len(history.events) > 5
    await replay(history)
