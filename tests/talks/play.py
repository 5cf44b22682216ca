"""Plays a session: answers for the model, decides for people, restarts the worker. In lockstep with the run."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque

from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from temporalio.client import Client

from tests.harness import check_answers
from tests.talks.desk import Ask
from tests.talks.line import Line
from tests.talks.stage import Row, Stage, said, text
from tests.talks.talk import GATED, Act, Call, Interrupt, Push, Restart, Send, Step, Talk, Turn

EDIT = 1000
"""What is added to a number by who edits it."""


class Player(Stage):
    """One session on one server. `restarts`, `pushes`: whether such acts are carried out, or nothing happens."""

    def __init__(self, client: Client, talk: Talk, *, cache: int = 1000, restarts: bool = False, pushes: bool = False):
        super().__init__(client, cache)
        self.talk, self.restarts, self.pushes = talk, restarts, pushes
        self.line = Line()
        self.allowed: list[tuple[str, int]] = []
        self.decided: set[int] = set()
        self.numbers = itertools.count(1)

    async def play(self) -> None:
        """From the start to the last answer; the session is idle then."""
        await self.open(text("prompt") if self.talk.prompt else None)
        if self.talk.prompt:
            self.line.take("prompt", "queue")
        while self.line.queue or await self.more():
            self.line.begin()
            turns, number = self.talk.turns, len(self.line.turns) - 1
            await self.turn(turns[number] if number < len(turns) else Turn())

    async def more(self) -> bool:
        """Whether somebody says something to the idle session."""
        await self.look(self.idle)
        if len(self.line.turns) >= len(self.talk.turns):
            return False
        turn = self.talk.turns[len(self.line.turns)]
        for act in turn.idle:
            await self.act(act)
        if not self.line.queue:
            await self.act(turn.message)
        return bool(self.line.queue)

    async def turn(self, turn: Turn) -> None:
        """Play a turn to its end, or until somebody ends it."""
        for step in turn.steps:
            if not await self.asked(step.asked) or not await self.step(step):
                return
        if not await self.asked(turn.last):
            return
        number = len(self.line.turns)
        confused = UnexpectedModelBehavior(f"confused in turn {number}")
        answer = ModelResponse(parts=[TextPart(f"answer {number}")])
        self.answer(confused if turn.fails else answer)
        self.line.end("failed" if turn.fails else "done")

    async def asked(self, acts: tuple[Act, ...]) -> bool:
        """The model is asked, and sees what it has to; whether the turn still runs after these acts."""
        self.line.ask()
        await self.next_ask()
        for act in acts:
            await self.act(act, asked=True)
            if not self.line.running:
                return False
        return True

    async def next_ask(self) -> None:
        async with asyncio.timeout(90):
            self.ask: Ask = await self.log.asks.get()
        check_answers(self.ask.messages)
        assert said(self.ask.messages) == [text(id) for id in self.line.said]

    def answer(self, response: ModelResponse | Exception) -> None:
        self.ask.answer.set_result(response)

    async def step(self, step: Step) -> bool:
        """Calls: one act and one decision whenever nothing can go on by itself. Whether the turn still runs."""
        calls = {next(self.numbers): call for call in step.calls}
        parts = [ToolCallPart(call.tool, {"n": n}, tool_call_id=f"c{n}") for n, call in calls.items()]
        self.answer(ModelResponse(parts=parts))
        acts = deque(step.rest)
        while (rows := await self.rest(calls)) is not None:
            if acts:
                await self.act(acts.popleft())
            if not self.line.running:
                return False
            for n in calls:
                self.log.held[n].set()
            if rows:
                await self.decide(rows[0], calls)
        return True

    async def rest(self, calls: dict[int, Call]) -> list[Row] | None:
        """What waits, once nothing can go on by itself; `None`: the model is asked."""
        held = [n for n, call in calls.items() if call.tool == "hold" and not self.log.held[n].is_set()]
        rows: list[Row] | None = None

        async def resting() -> bool:
            nonlocal rows
            if not self.log.asks.empty():
                rows = None
                return True
            status = await self.run.status()
            rows = status.pending
            began = [n for tool, n in self.log.ran if tool == "hold" and n in held]
            return len(status.open_calls) == len(began) and bool(rows or began)

        await self.look(resting)
        return rows

    async def decide(self, row: Row, calls: dict[int, Call]) -> None:
        """One person decides on one call, and the run has heard it."""
        n = row["args"]["n"]
        call = calls[n % EDIT]
        assert (row["tool"], call.tool in GATED) == (call.tool, True)
        assert n not in self.decided, "it was decided already"
        by = "bob" if "ann" in row["votes"] else "ann"
        body: Row = {"call": row["call"], "by": by}
        last = call.tool != "quorum" or by == "bob"
        match call.decision:
            case "no":
                verb, body["reason"] = "deny", f"no {n}"
                self.decided.add(n)
            case "edited" if n < EDIT:
                verb, body["args"], n = "approve", {"n": n + EDIT}, n + EDIT
            case _:
                verb = "approve"
        if verb == "approve" and last:
            self.allowed.append((call.tool, n))
            self.decided.add(n)
        await self.tell(verb, body, call.via)

        async def heard() -> bool:
            return not self.log.asks.empty() or row not in (await self.run.status()).pending

        await self.look(heard)

    async def act(self, act: Act, *, asked: bool = False) -> None:
        """Do one thing; `asked`: the model is being asked."""
        match act:
            case Send():
                await self.send(act)
            case Interrupt():
                if self.line.running:
                    self.line.end("interrupted")
                    await self.tell("interrupt", {"by": "ann", "reason": "stop"}, act.via)
            case Restart():
                await self.restart(act, asked)
            case Push() if self.pushes:
                await self.push()
            case Push():
                pass

    async def send(self, send: Send) -> None:
        """One message, perhaps twice; or one that was sent before, which changes nothing."""
        if send.old and self.line.sent:
            await self.tell("send", {"content": "other", "id": "m1", "when_busy": send.mode}, send.via)
            return
        id = self.line.new()
        self.line.take(id, send.mode)
        await self.tell("send", {"content": text(id), "id": id, "when_busy": send.mode, "by": "ann"}, send.via)
        await self.look(lambda: self.known(id))
        if send.again:
            await self.tell("send", {"content": "other", "id": id, "when_busy": send.mode}, send.via)

    async def restart(self, act: Restart, asked: bool) -> None:
        """Another worker, and messages that nobody hears meanwhile. Not while a tool is held: it would be lost."""
        held = [n for tool, n in self.log.ran if tool == "hold" and not self.log.held[n].is_set()]
        stops = self.restarts and not held
        if stops:
            await self.worker.aclose()
        ids = [self.line.new() for _ in range(act.messages)]
        for id in ids:
            self.line.take(id, "queue")
            await self.tell("send", {"content": text(id), "id": id}, "signal")
        if stops:
            await self.hire()
        for id in ids:
            await self.look(lambda id=id: self.known(id))
        if stops and asked:
            await self.next_ask()
