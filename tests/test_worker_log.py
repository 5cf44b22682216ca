"""The log of `perdure worker`: a line for an attempt that fails for what is away, one trace for what is unforeseen."""

from __future__ import annotations

import logging
import uuid
from pathlib import Path

import pytest
from pydantic_ai.exceptions import FallbackExceptionGroup, ModelHTTPError, UnexpectedModelBehavior, UserError
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from perdure.activities.faults import foreseen
from perdure.activities.reported import Reported, report_once
from perdure.errors import AnswerLost, DeclarationError, InternalError, PayloadStoreError, ServerUnreachable
from tests.command import ROOT, free_port, running
from tests.harness import Runs, failure_of

TRACE = "Traceback (most recent call last)"
APP = '''
from pydantic_ai import Agent
from perdure import App, DurableAgent, ToolPolicy
from perdure.toolsets.mcp import MCPServer
from tests.scripts import Script

crm = MCPServer("http://127.0.0.1:{port}/mcp", id="crm")
clerk = Agent(Script("done").model, name="clerk", toolsets=[crm])
buggy = Agent(Script({{"fail": {{}}}}, "done").model, name="buggy")


@buggy.tool_plain
def fail() -> str:
    """Fails for no reason that anybody has foreseen."""
    raise RuntimeError("first line\\nsecond line")


policies = {{"fail": ToolPolicy(effect="safe", attempts=3, backoff=0.1)}}
app = App(agents=[DurableAgent(clerk, model_attempts=3), DurableAgent(buggy, policies=policies)])
'''


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (ServerUnreachable("x"), True),
        (AnswerLost("x"), True),
        (PayloadStoreError("x"), True),
        (ModelHTTPError(503, "m"), True),
        (FallbackExceptionGroup("x", [ModelHTTPError(503, "m"), ModelHTTPError(429, "m")]), True),
        (FallbackExceptionGroup("x", [ModelHTTPError(503, "m"), RuntimeError("x")]), False),
        (UnexpectedModelBehavior("x"), True),
        (InternalError("x"), False),
        (DeclarationError("x"), False),
        (UserError("x"), False),
        (ApplicationError("x"), False),
        (RuntimeError("x"), False),
    ],
)
def test_what_is_foreseen(error: Exception, known: bool) -> None:
    assert foreseen(error) is known


def test_temporals_line_is_left_out_only_of_what_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("temporalio.activity")
    before = list(logger.filters)
    try:
        report_once()
        report_once()
        for error in (Reported("told"), ApplicationError("new")):
            try:
                raise error
            except ApplicationError:
                logger.warning("Completing activity as failed", exc_info=True)
        assert len(logger.filters) == len(before) + 1
    finally:
        logger.filters[:] = before
    assert [record.exc_info[1].args for record in caplog.records if record.exc_info and record.exc_info[1]] == [
        ("new",)
    ]


async def test_a_worker_says_what_is_wrong_once(client: Client, tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "clerks.py").write_text(APP.format(port=port))
    queue = f"q-{uuid.uuid4().hex[:12]}"
    runs = Runs(client, queue)
    address = client.service_client.config.target_host
    paths = f"{tmp_path}:{ROOT}"
    async with running("worker", "clerks:app", "--task-queue", queue, address=address, PYTHONPATH=paths) as worker:
        await worker.line("worker polls")
        failure = await failure_of(await runs.start("clerk", "go"))
        assert (await runs.run("buggy", "go"))["output"] == "done"
        worker.process.terminate()
        lines = (await worker.end()).err.splitlines()
    assert failure.type == "ServerUnreachable"
    said = f"ServerUnreachable: The MCP server 'crm' can't be reached at http://127.0.0.1:{port} (Connection refused)."
    attempts = [line for line in lines if said in line]
    assert len(attempts) == 3
    assert all(
        "[RuntimeError('Client failed to connect: All connection attempts failed')]" in line for line in attempts
    )
    bugs = [line for line in lines if "tool 'fail'" in line and "ERROR" in line]
    assert (len(bugs), "\n".join(lines).count("RuntimeError: first line")) == (3, 3)
    before = [line for line in lines[: lines.index(bugs[0])] if "sdk_core::" not in line]
    assert not [line for line in before if TRACE in line]
    assert len(before) <= 6, before
    assert not [line for line in lines if "Completing activity as failed" in line]
