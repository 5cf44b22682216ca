"""A scenario from start to verdict, on workers that are there all the time or on some of its own."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.service import RPCError

from perdure import App
from perdure.worker import serving
from tests.decisions.known import Known, Row
from tests.decisions.scenario import Event, Scenario
from tests.decisions.shop import Book, Log, prompt_of, shop
from tests.decisions.trial import Trial
from tests.decisions.verdict import (
    check_audit,
    check_history,
    check_keys,
    check_messages,
    check_ran,
    check_requests,
    outcome,
)
from tests.harness import TIMEOUT, check_answers, check_tasks, messages, replay

GRACE = timedelta(seconds=1)


@dataclass(repr=False)
class House:
    """Two workers that serve every run without an event, the second without a cache, and what runs write down."""

    client: Client
    book: Book
    apps: tuple[App, App]
    queues: dict[Event, str]

    @staticmethod
    @asynccontextmanager
    async def opened(client: Client) -> AsyncGenerator[House]:
        """Start the two workers."""
        book: Book = defaultdict(Log)
        name = f"q-{uuid.uuid4().hex[:12]}"
        house = House(client, book, (shop(book), shop(book)), {"none": name, "cache 0": f"{name}-0"})
        async with (
            serving(client, house.apps[0], task_queue=name, grace=GRACE),
            serving(client, house.apps[0], task_queue=f"{name}-0", grace=GRACE, max_cached_workflows=0),
        ):
            yield house

    async def played(self, scenario: Scenario) -> Row:
        """Play a scenario and check everything that must hold. Returns what must not depend on the worker."""
        run = f"run-{uuid.uuid4().hex[:12]}"
        own = scenario.event in ("restart", "cold")
        handle: Any = await self.client.start_workflow(
            "AgentWorkflow",
            {"agent": "shop", "prompt": prompt_of(run, scenario)},
            id=run,
            task_queue=run if own else self.queues.get(scenario.event, self.queues["none"]),
            execution_timeout=TIMEOUT,
        )
        apps = iter(self.apps)

        async def hire(until_closed: AsyncExitStack) -> None:
            """A worker with an app that no worker of this run had before it, and cold caches."""
            await until_closed.enter_async_context(serving(self.client, next(apps), task_queue=run, grace=GRACE))

        trial = Trial(scenario, handle, self.book[run], Known.before(scenario), hire if own else None)
        try:
            await trial.play()
            return await judged(trial)
        finally:
            for turn in range(len(scenario.steps) + 1):
                trial.log.released[turn].set()
            await trial.worker.aclose()
            self.book.pop(run)


async def judged(trial: Trial) -> Row:
    """The run ends as it has to, and everything holds of what it leaves."""
    if trial.known.ends:
        await broken_off(trial)
        await trial.observe()
        said = await messages(trial.handle)
    else:
        said = await messages(trial.handle)  # now: a closed run is replayed for every query
        trial.log.released[len(trial.scenario.steps)].set()
        result = await trial.handle.result()
        assert result["output"] == "done"
        trial.known.learn(result["audit"])
    with pytest.raises(RPCError, match="already completed"):
        await trial.handle.signal("approve", {"call": next(iter(trial.known.states))})
    await check_kept(trial, said)
    return outcome(trial.known, trial.log, said)


async def broken_off(trial: Trial) -> None:
    """The run was cancelled, or ended with its own error."""
    with pytest.raises(WorkflowFailureError) as raised:
        await trial.handle.result()
    cause = raised.value.cause
    if trial.known.cancelled:
        assert isinstance(cause, CancelledError)
    else:
        assert isinstance(cause, ApplicationError)
        assert cause.type == "ApprovalExpired"


async def check_kept(trial: Trial, said: list[ModelMessage]) -> None:
    """Messages, what truly ran, history."""
    check_answers(said)
    check_messages(trial.known, trial.log, said)
    check_ran(trial.known, trial.log)
    check_requests(trial.known, trial.log)
    check_audit(trial.known, trial.log)
    check_keys(trial.known, (await trial.handle.query("transcript"))["entries"])
    history = await trial.handle.fetch_history()
    check_tasks(history)
    check_history(trial.known, history)
    await replay(history, sandboxed=False)
