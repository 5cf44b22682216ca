"""A long session whose workers are killed and whose server goes away, again and again: nothing is lost or doubled.

`PERDURE_SOAK_TURNS` turns, 40 by default; `make soak` has 200. What happens when is drawn from a seed.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHistory

from perdure.client import PerdureClient, Refused
from perdure.client.run import RunHandle
from perdure.contracts import Session
from tests.harness import chain, check_answers, check_tasks, messages, replay, until
from tests.mayhem import Place, persistent
from tests.soak_app import AGENT, UNSAFE, answer_of, calls_of

TURNS = int(os.environ.get("PERDURE_SOAK_TURNS", "40"))
SEED = int(os.environ.get("PERDURE_SOAK_SEED", "11"))
WINDOW = 4
"""Messages that wait for their answers at once."""
pytestmark = pytest.mark.timeout(240 + 10 * TURNS)
MAYHEM = ("worker", "SIGKILL", "worker", "SIGTERM and worker", "worker", "SIGKILL and worker", "SIGTERM")
"""What is done in turn: the worker is killed, the server is restarted after a signal, or both."""
SAID = {"returned": "success", "unknown": "interrupted", "denied": "denied"}
"""What Pydantic AI calls these kinds of outcomes."""
Row = dict[str, Any]


@dataclass
class Soak:
    """The session, and what is done to it."""

    place: Place
    run: RunHandle
    rng: random.Random = field(default_factory=lambda: random.Random(SEED))
    errors: list[str] = field(default_factory=list[str])
    """What callers were told and had to repeat."""
    done: list[str] = field(default_factory=list[str])
    """What was done to workers and server."""

    async def talk(self) -> None:
        """Send the messages, some of them twice, and wait for answers."""
        for n in range(1, TURNS + 1):
            times = 2 if self.rng.random() < 0.2 else 1
            for _ in range(times):
                turn = await persistent(
                    lambda n=n: self.run.send(f"turn {n}", id=f"m{n}", when_busy="queue"), self.errors
                )
                assert turn.messages == [f"m{n}"]
            if n >= WINDOW:
                await self.answered(n - WINDOW + 1)
        for n in range(max(1, TURNS - WINDOW + 2), TURNS + 1):
            await self.answered(n)

    async def answered(self, n: int) -> None:
        turn = await persistent(lambda: self.run.wait_turn(message=f"m{n}"), self.errors)
        assert (turn.turn, turn.state) == (n, "done"), turn

    async def decide(self) -> None:
        """Approve every other refund, and deny the rest."""
        for n in (n for n in range(1, TURNS + 1) if "refund" in calls_of(n)):
            row = await self.waits(n)
            verb = "approve" if n % 20 == 5 else "deny"
            body = {"by": "ann", "reason": f"turn {n}"}
            before = len(self.errors)
            try:
                await persistent(lambda r=row, v=verb, b=body: self.run.decide(v, r["call"], b), self.errors)
            except Refused as refusal:
                if refusal.type not in ("AlreadyDecided", "NotPending") or len(self.errors) == before:
                    raise  # else the first try was heard, and only its answer was lost

    async def waits(self, n: int) -> Row:
        """The refund of turn `n`, once it waits."""
        found: list[Row] = []

        async def there() -> bool:
            if not any(row["n"] == n for row in self.place.rows("asked")):
                return False
            found[:] = [r for r in await persistent(self.run.pending, self.errors) if r["args"] == {"n": n}]
            return bool(found)

        await until(there, seconds=60 + 5 * TURNS)
        return found[0]

    async def mayhem(self) -> None:
        """At random moments: kill the worker, restart the server, or both."""
        moments = sorted(self.rng.sample(range(4, 2 * TURNS - 4), max(4, TURNS // 10)))
        for at, moment in enumerate(moments):
            await until(lambda moment=moment: len(self.place.rows("asked")) >= moment, seconds=60 + 5 * TURNS)
            what = MAYHEM[at % len(MAYHEM)]
            self.done.append(what)
            if "worker" in what:
                await self.place.kill_worker()
            if "SIG" in what:
                await self.place.restart_server(signal.Signals[what.split(" ")[0]])


def deaths() -> list[tuple[int, str]]:
    """Where a worker kills itself: turn, and the model or a tool."""
    rng = random.Random(SEED + 1)
    turns = sorted(rng.sample(range(2, TURNS), TURNS // 10))
    return [(n, rng.choice(["asked", "asked again", *calls_of(n), *calls_of(n)])) for n in turns]


async def test_a_long_session_outlives_its_workers_and_its_server(tmp_path: Path) -> None:
    dying = deaths()
    (tmp_path / "dies").write_text(re.sub("'", '"', str([list(death) for death in dying])))
    queue = f"soak-{uuid.uuid4().hex[:12]}"
    place = Place(tmp_path, "tests.soak_app", queue, ("limit.historyCount.suggestContinueAsNew=300",))
    async with place.opened() as client:
        run = await PerdureClient(client).start(AGENT, session=Session(), task_queue=queue)
        soak = Soak(place, run)
        await asyncio.gather(soak.talk(), soak.decide(), soak.mayhem())
        await persistent(lambda: run.close(by="ann"), soak.errors)
        result = await persistent(run.result, soak.errors)
        assert (result.turns, result.steps, result.usage.requests) == (TURNS, 2 * TURNS, 2 * TURNS)
        await check_conversation(client, run, soak)
        kinds = await kinds_of(run)
        check_tools(place, kinds, dying)
        histories = await check_histories(client, run)
        check_model(place, kinds, histories)
    print(f"\n{TURNS} turns in {len(histories)} runs and {place.workers} workers; done: {Counter(soak.done)}")
    print(f"died: {dying}; kinds: {Counter(kind for _, kind in sorted(kinds.items()))}; told: {Counter(soak.errors)}")


async def check_conversation(client: Client, run: RunHandle, soak: Soak) -> None:
    """Each message has its turn, in order, once; every call has its answer."""
    entries = await run.transcript()
    users = [(entry["id"], entry["content"]) for entry in entries if entry["kind"] == "user"]
    assert users == [(f"m{n}", f"turn {n}") for n in range(1, TURNS + 1)]
    check_answers(await messages(client.get_workflow_handle(run.id)))
    for n in range(1, TURNS + 1):
        turn = await run.turn(n)
        assert (turn.messages, turn.state) == ([f"m{n}"], "done")


async def kinds_of(run: RunHandle) -> dict[tuple[str, int], str]:
    """By tool and turn: the kind of outcome of its call."""
    rows = [row for entry in await run.transcript() for row in entry.get("outcomes", [])]
    found = {(row["tool"], int(row["tool_call_id"].split("-")[1])): row["kind"] for row in rows}
    assert len(found) == len(rows), "a call has two outcomes"
    assert set(found) == {(tool, n) for n in range(1, TURNS + 1) for tool in calls_of(n)}
    return found


def check_tools(place: Place, kinds: dict[tuple[str, int], str], dying: list[tuple[int, str]]) -> None:
    """Unsafe tools ran at most once, and where that isn't known it is said; the others ran until they had an answer,
    each time with the key of their call."""
    ran: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in place.rows("ran"):
        ran[row["tool"], row["n"]].append(row)
    for (tool, n), kind in kinds.items():
        rows, denied = ran[tool, n], tool == "refund" and n % 20 != 5
        assert kind in ({"denied"} if denied else {"returned", "unknown"} if tool in UNSAFE else {"returned"})
        if tool in UNSAFE:
            assert len(rows) <= (not denied)
            assert len(rows) == 1 or kind != "returned"
            assert (n, tool) not in dying or denied or kind == "unknown"
        else:
            assert rows
            assert len({row["key"] for row in rows}) == 1
            assert (n, tool) not in dying or len({row["pid"] for row in rows}) > 1
    keys = [rows[0]["key"] for rows in ran.values() if rows]
    assert len(set(keys)) == len(keys)


async def check_histories(client: Client, run: RunHandle) -> list[WorkflowHistory]:
    """The runs of the chain replay, and no workflow task failed."""
    histories = await chain(client.get_workflow_handle(run.id))
    assert len(histories) > 1, "it didn't continue as new"
    for history in histories:
        check_tasks(history)
        await replay(history, sandboxed=False)
    return histories


def check_model(place: Place, kinds: dict[tuple[str, int], str], histories: list[WorkflowHistory]) -> None:
    """The model was asked twice in a turn, but for lost attempts; and it was told what became of its calls."""
    asked = Counter((row["n"], row["place"]) for row in place.rows("asked"))
    assert set(asked) == {(n, place) for n in range(1, TURNS + 1) for place in ("asked", "asked again")}
    attempts = [count for history in histories for count in model_attempts(history)]
    assert len(attempts) == 2 * TURNS
    assert 2 * TURNS <= asked.total() <= sum(attempts)
    assert asked.total() - 2 * TURNS <= place.workers + 2 * TURNS // 10
    told = [answer_of(n, {tool: SAID[kinds[tool, n]] for tool in calls_of(n)}) for n in range(1, TURNS + 1)]
    assert answers(histories) == told


def model_attempts(history: WorkflowHistory) -> list[int]:
    """Of each model request of a run: how many attempts it took."""
    asked: list[int] = []
    found: list[int] = []
    for event in history.events:
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name == "model_request":
            asked.append(event.event_id)
        started = event.activity_task_started_event_attributes
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED and started.scheduled_event_id in asked:
            found.append(started.attempt)
    return found


def answers(histories: list[WorkflowHistory]) -> list[str]:
    """The last answers of the turns, in order, as the activities recorded them."""
    found: list[str] = []
    for history in reversed(histories):
        for event in history.events:
            for payload in event.activity_task_completed_event_attributes.result.payloads:
                found += re.findall(r'"content":"(answer \d+: [^"]*)"', payload.data.decode())
    return found
