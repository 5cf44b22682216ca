"""Plays a scenario on the real server, and holds what people are told against the rules as it goes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from temporalio.client import WorkflowUpdateFailedError
from temporalio.service import RPCError, RPCStatusCode

from tests.decisions.known import Answers, Known, Row
from tests.decisions.rules import CLOSED, Case, Reply
from tests.decisions.scenario import Closing, Op, Scenario, Sent, Wave, sent
from tests.decisions.shop import Log
from tests.harness import Handle, until

Work = Callable[[], Awaitable[Any]]


@dataclass
class Trial:
    """One run of a scenario."""

    scenario: Scenario
    handle: Handle
    log: Log
    known: Known
    hire: Callable[[AsyncExitStack], Awaitable[None]] | None
    """Starts a worker of the run's own, until the stack is closed; `None` where one is there all the time."""
    worker: AsyncExitStack = field(default_factory=AsyncExitStack)
    unweighed: list[tuple[Answers, bool]] = field(default_factory=lambda: [])
    """Waves whose answers haven't been held against the rules yet, and whether each was sent at once."""
    sent: int = 0
    pauses: int = 0
    closings: int = 0

    async def play(self) -> None:
        """From the start to where the run has to end, or to the request for its output."""
        steps = self.scenario.steps
        late = await self.first_wave(steps[0].early)
        for step, plan in enumerate(steps):
            await self.while_model_is_asked(step, late)
            self.known.begins(step)
            self.log.released[step].set()
            late = deque(plan.waves)
            await self.pass_step(step, late)
            if self.known.ends:
                return
            late.extend([] if step + 1 == len(steps) else [steps[step + 1].early])
        await self.while_model_is_asked(len(steps), late)

    async def first_wave(self, wave: Wave) -> deque[Wave]:
        """Send it before there is a worker where one is to be started late, else leave it for later."""
        if self.scenario.event == "restart":
            await self.send(wave, together=True, then=self.begin_work)
            return deque()
        if self.scenario.event == "cold":
            await self.begin_work()
        return deque([wave])

    async def begin_work(self) -> None:
        """Start a worker."""
        assert self.hire is not None
        await self.hire(self.worker)

    async def while_model_is_asked(self, turn: int, waves: deque[Wave]) -> None:
        """When the model is asked for its answer of that turn, every call before is decided; send the waves then."""
        await until(lambda: turn in self.log.asked)
        for wave in waves:
            await self.send(wave)
        if turn:
            assert self.known.over(turn - 1), self.known.states
        if self.unweighed:
            await self.observe()

    async def pass_step(self, step: int, waves: deque[Wave]) -> None:
        """Send a wave at each pause, let the event happen at its own, then decide what is left."""
        while await self.pause(step, idle=not waves):
            due = self.scenario.event if self.pauses == self.scenario.pause else "none"
            self.pauses += 1
            wave = waves.popleft() if waves else Wave() if due in ("restart", "cancel") else self.closing()
            if due in ("restart", "cold"):
                await self.worker.aclose()
            if due == "cold":
                await self.begin_work()
            if due == "restart":
                await self.send(wave, together=True, then=self.begin_work)
            elif due == "cancel":
                self.known.cancelled = True
                await self.send(wave, then=self.handle.cancel)
                return
            else:
                await self.send(wave)

    async def pause(self, step: int, *, idle: bool) -> bool:
        """Until somebody is waited for and nothing runs; `False` when the step is over.

        Where nobody has anything to send, a call that expires by itself isn't a pause.
        """
        status: Row = {}

        async def there() -> bool:
            if not (self.known.ends or self.settled(step)):
                return False
            if self.known.over(step) and not self.known.ends and not self.unweighed:
                return step + 1 in self.log.asked
            status.update(await self.observe())
            waiting = [row for row in status["pending"] if row["expires_at"] is None or not idle]
            return status["state"] == "done" or bool(waiting and not status["open_calls"])

        await until(there)
        if status.get("state") == "done":
            await self.observe()
            assert self.known.ends, self.known.states
        if status.get("state") == "done" or step + 1 in self.log.asked:
            assert self.known.over(step), self.known.states
            return False
        self.known.compare(step, status["pending"])
        return True

    def settled(self, step: int) -> bool:
        """Whether the tools that have to run by now have run: until then there is nothing to ask the server."""
        done = {self.known.planned(key) for key, *_ in (*self.log.ran, *self.log.began)}
        due = (key for key in self.known.begun(step) if self.known.runs(key) or self.known.case(key).call.asks_itself)
        return done.issuperset(due)

    async def observe(self) -> Row:
        """Hold what was sent and what the run says of itself against the rules. Returns its status."""
        if any(edits_by_signal(message) for answers, _ in self.unweighed for message, _ in answers):
            await until(self.quiet)
        audit: list[Row] = await self.handle.query(
            "audit"
        )  # before the status: what expires meanwhile has only more rows
        status: Row = await self.handle.query("status")
        self.known.weigh(self.unweighed, audit, status)
        self.known.learn(audit)
        self.unweighed = []
        return status

    async def quiet(self) -> bool:
        """Whether nothing that was sent is still being looked at. Without a worker it never is."""
        description = (await self.handle.describe()).raw_description
        checks = (one for one in description.pending_activities if one.activity_type.name == "check_edit")
        return not (description.HasField("pending_workflow_task") or any(checks))

    def closing(self) -> Wave:
        """Decisions that count, for everything that waits and doesn't expire."""
        ops: list[Op] = []
        for index, key in enumerate(self.known.states):
            case = self.known.case(key)
            if case.stage == "waits" and not case.terms.expiry:
                ops += closing_ops(case, index, self.scenario.closing[self.closings % len(self.scenario.closing)])
                self.closings += 1
        assert ops, self.known.states
        return Wave(tuple(ops))

    async def send(self, wave: Wave, *, together: bool = False, then: Work | None = None) -> None:
        """Send a wave, do `then`, and gather the answers. Signals keep their order, also when sent at once.

        One after the other means that the arguments of one edit are checked before the next message is sent.
        """
        together = together or wave.together
        newest = self.known.newest
        messages = [sent(op, f"t{self.sent + index}", self.scenario, newest) for index, op in enumerate(wave.ops)]
        self.sent += len(messages)
        replies: list[asyncio.Task[Reply]] = []
        for message in messages:
            replies.append(asyncio.create_task(self.deliver(message)))
            if message.op.via == "signal" or not together:
                await replies[-1]
            if edits_by_signal(message) and not together:
                await until(self.quiet)
        if then is not None:
            await then()
        answers = list(zip(messages, await asyncio.gather(*replies), strict=True))
        self.unweighed.append((answers, together))

    async def deliver(self, message: Sent) -> Reply:
        """Send one message. An update is answered at once, a signal not at all."""
        handle: Any = self.handle
        try:
            if message.op.via == "signal":
                await handle.signal(message.verb, args=message.raw)
                return Reply()
            answer = await handle.execute_update(message.verb, args=message.raw)
        except WorkflowUpdateFailedError as failure:
            return Reply(refused=getattr(failure.cause, "type", None) or str(failure.cause))
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return CLOSED
            raise
        return Reply(applied=answer["outcome"], key=answer["call"])


def edits_by_signal(message: Sent) -> bool:
    """Whether it is looked at for longer than a workflow task."""
    return bool(message.op.edit) and message.op.via == "signal" and message.verb == "approve"


def closing_ops(case: Case, index: int, plan: Closing) -> list[Op]:
    """What decides a call, whatever was sent before."""
    people = [name for name in case.terms.approvers or ("",) if name not in case.votes]
    needed = case.terms.quorum - len(case.votes) if plan.allow else 1
    return [Op("allow" if plan.allow else "refuse", plan.via, index, by=name) for name in people[:needed]]
