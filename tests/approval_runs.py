"""A run of a case in worker processes: what waits, how it is decided, and what must hold of it in the end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from pydantic_ai.messages import ModelResponse, ToolReturnPart

from perdure.contracts import MAY_HAVE_RUN
from tests.approval_cases import CASES, GATED, RETRIED, Call, Case, Then, Verb
from tests.deciding import Row, pending
from tests.harness import Handle, check_run, messages
from tests.sites import Site

LONG = timedelta(minutes=5)
"""Execution timeout of runs that outlive several worker processes."""
LOST = f"The worker that ran the call was lost. {MAY_HAVE_RUN}"
Way = Literal["signal", "update"]


@dataclass
class Run:
    """One run of a case."""

    site: Site
    name: str
    handle: Handle
    then: Then
    shown: dict[Call, Row] = field(default_factory=dict[Call, Row])
    """What the query `pending` said of each call that waits, when it was first asked."""

    @property
    def case(self) -> Case:
        return CASES[self.name]

    def body(self, call: Call, by: str = "ann") -> dict[str, Any]:
        """What decides a call."""
        reason = {"reason": "no"} if self.case.decisions[call] == "deny" else {}
        return {"call": self.shown[call]["call"], "by": by, **reason}

    async def waiting(self) -> dict[Call, Row]:
        """What waits now, once as many calls do as people decide in this case."""
        rows = await pending(self.handle, len(self.case.decisions))
        return {(row["tool"], row["args"]["n"]): row for row in rows}

    async def decide(self, way: Way, *calls: Call) -> None:
        """Decide these calls, or all, each by as many people as it still needs."""
        for call in calls or self.case.decisions:
            needed = {"ann", "bob"} if call[0] == "transfer" else {"ann"}
            for by in sorted(needed - set(self.shown[call]["votes"])):
                await self.send(way, self.case.decisions[call], self.body(call, by))

    async def send(self, way: Way, verb: Verb, body: dict[str, Any]) -> Any:
        """One decision."""
        if way == "signal":
            return await self.handle.signal(verb, body)
        return await self.handle.execute_update(verb, body)  # pyright: ignore[reportUnknownMemberType]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """What truly happened in this run."""
        return [row for row in self.site.rows(name) if row["run"] == self.handle.id]

    def ran(self) -> dict[Call, list[int]]:
        """The attempts in which each call had its effect."""
        found: dict[Call, list[int]] = {}
        for row in self.rows("ran"):
            found.setdefault((row["tool"], row["n"]), []).append(row["attempt"])
        return found

    async def check(self) -> None:
        """What must hold of a run, whatever happened to its workers."""
        result = await self.handle.result()
        assert result["output"] == "done"
        await check_run(self.handle)
        assert await self.answered() == {call: self._answer(call) for call in self.case.calls}
        assert self.ran() == {call: attempts for call in self.case.calls if (attempts := self._attempts(call))}
        keys = {(row["tool"], row["n"], row["key"]) for row in self.rows("ran") if row["tool"] in GATED}
        assert len({key for *_, key in keys}) == len(keys) == len(set(self.ran()) & set(self.shown))
        assert {call: row["args"] for call, row in self.shown.items()} == {c: {"n": c[1]} for c in self.case.decisions}
        assert len(self.rows("asked")) == result["usage"]["requests"] == 2
        status = await self.handle.query("status")
        events = self._events(result["audit"])
        assert sorted(row for row in events if row[1] != "refused") == sorted(self._expected_events())
        late = [row for row in status["rejected"] if "already decided" in row["reason"]]
        assert len([row for row in events if row[1] == "refused"]) >= len(late), "updates are refused, too"
        assert (status["state"], status["pending"], status["open_calls"]) == ("done", [], [])

    async def answered(self) -> dict[Call, tuple[str, str]]:
        """Outcome and text of the answer to each call, found by its id."""
        every = await messages(self.handle)
        parts = [part for message in every for part in message.parts]
        returns = {part.tool_call_id: part for part in parts if isinstance(part, ToolReturnPart)}
        calls = [call for message in every if isinstance(message, ModelResponse) for call in message.tool_calls]
        return {
            (call.tool_name, call.args_as_dict()["n"]): (answer.outcome, answer.model_response_str(wrap_if_error=False))
            for call in calls
            for answer in [returns[call.tool_call_id]]
        }

    def _answer(self, call: Call) -> tuple[str, str]:
        if self.case.decisions.get(call) == "deny":
            return "denied", "no"
        if call[0] not in GATED or call[0] in RETRIED or not self.then:
            return "success", f"{call[0]} {call[1]}"
        return ("failed", "The tool failed with ConnectionError.") if self.then == "raises" else ("interrupted", LOST)

    def _attempts(self, call: Call) -> list[int]:
        if self.case.decisions.get(call) == "deny":
            return []
        if call[0] not in GATED or not self.then:
            return [1]
        return ([] if self.then == "begins" else [1]) + ([2] if call[0] in RETRIED else [])

    def _events(self, audit: Iterable[Row]) -> list[tuple[str, str, str]]:
        return [(row["call"], row["event"], row.get("outcome", "")) for row in audit]

    def _expected_events(self) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        for call, verb in self.case.decisions.items():
            key = self.shown[call]["call"]
            votes = [(key, "voted", "")] if call[0] == "transfer" else []
            kind = {"success": "returned", "failed": "failed", "interrupted": "unknown"}.get(self._answer(call)[0], "")
            ends = [(key, "denied", "")] if verb == "deny" else [(key, "approved", ""), (key, "ran", kind)]
            found += [(key, "asked", ""), *votes, *ends]
        return found


async def begun(site: Site, names: Iterable[str], then: Then | None = None) -> list[Run]:
    """Runs of these cases, once everything that people decide waits and everything else has run."""
    runs: list[Run] = []
    for name in names:
        does = CASES[name].then if then is None else then
        handle = await site.start(name, timeout=LONG, metadata={"then": does})
        runs.append(Run(site, name, handle, does))
    for run in runs:  # one by one: the others get there meanwhile, without being asked again and again
        run.shown = await run.waiting()
    return runs


@asynccontextmanager
async def named(run: Run) -> AsyncGenerator[None]:
    """Say which run it was, where something doesn't hold."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in a run of case {run.name!r} whose gated tools do {run.then!r}: {run.handle.id}")
        raise


async def check_all(runs: Iterable[Run]) -> None:
    """Check each run."""
    for run in runs:
        async with named(run):
            await run.check()
