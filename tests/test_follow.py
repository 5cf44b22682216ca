"""Following a run from Python: each entry once, whatever happens meanwhile, and nothing of it in history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from temporalio.client import Client

from perdure import App
from perdure.client import NoSuchRun, PerdureClient, Progress, RunHandle, connect
from perdure.contracts import Json
from tests.deciding import pending, update
from tests.harness import Handle, working
from tests.live import Stammer
from tests.proxy import proxy
from tests.scripts import Script
from tests.sessions import SESSION, answered, closed, runs_of
from tests.shop import shop


class Reader:
    """Follows a run in the background, and keeps what it is shown."""

    def __init__(self, run: RunHandle, start: int = 0) -> None:
        self.looks: list[Progress] = []
        self.entries: dict[int, Json] = {}
        self._run = run
        self._start = start

    async def __aenter__(self) -> Reader:
        self.task = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def _read(self) -> None:
        expected = self._start
        async for look in self._run.follow(start=self._start, every=0.02):
            self.looks.append(look)
            for index, entry in enumerate(look.entries, look.start):
                assert index == expected
                self.entries[index] = entry
                expected += 1

    async def sees(self, what: Callable[[Progress], object]) -> Progress:
        """Wait for a look of which `what` is true."""
        async with asyncio.timeout(30):
            while True:
                if found := next((look for look in self.looks if what(look)), None):
                    return found
                if self.task.done():
                    self.task.result()
                    raise AssertionError("the run has ended before")
                await asyncio.sleep(0.02)

    async def all(self, handle: Handle) -> None:
        """When the run has ended, everything was shown."""
        async with asyncio.timeout(30):
            await self.task
        page = await handle.query("transcript", {"start": self._start})
        assert list(self.entries.values()) == page["entries"]
        assert list(self.entries) == list(range(self._start, page["total"]))


def kinds(reader: Reader) -> list[str]:
    return [entry["kind"] for entry in reader.entries.values()]


async def test_each_entry_and_turn_is_shown_once_over_roll_overs(rolling_client: Client) -> None:
    script = Script("hello", *({"look": {"n": n}} for n in range(3)), "seen", {"refund": {"n": 1}}, "paid")
    async with working(rolling_client, shop(script, [])) as runs:
        handle = await runs.start("shop", "hi", **SESSION)
        async with Reader(RunHandle(rolling_client, handle.id)) as reader:
            assert await answered(handle, "look") == "seen"
            await update(handle, "send", {"content": "refund", "id": "m"})
            (row,) = await pending(handle, 1)
            look = await reader.sees(lambda look: look.status and look.status.pending)
            assert look.status
            assert look.status.pending[0]["call"] == row["call"]
            await update(handle, "approve", {"call": row["call"], "by": "ann"})
            over = await reader.sees(lambda look: any(turn.turn == 3 and turn.ended for turn in look.turns))
            assert over.turns[-1].output
            assert over.turns[-1].output.value == "paid"
            await closed(handle)
            await reader.all(handle)
        assert await runs_of(handle) > 2
        ended = [turn.turn for look in reader.looks for turn in look.turns if turn.ended]
        assert ended in ([1, 2, 3], [2, 3]), "of those before the first look only the latest"


async def test_following_resumes_where_it_was(client: Client) -> None:
    async with working(client, shop(Script("a", "b", "c"), [])) as runs:
        handle = await runs.start("shop", "1", **SESSION)
        run = RunHandle(client, handle.id)
        async with Reader(run) as first:
            await answered(handle, "2")
            await first.sees(lambda look: look.next >= 5)
        after = first.looks[-1].next
        assert list(first.entries) == list(range(after))
        await answered(handle, "3")
        async with Reader(run, start=after) as second:
            await closed(handle)
            await second.all(handle)
        assert await run.length() == 7
        assert await run.kept(5) == (5, list((first.entries | second.entries).values())[5:])


async def test_a_connection_that_is_cut_costs_nothing(client: Client) -> None:
    target = client.service_client.config.target_host
    async with working(client, shop(Script("a", "b", "c"), [])) as runs, proxy(target) as wire:
        handle = await runs.start("shop", "1", **SESSION)
        away = await connect(address=wire.address)
        run = away.run(handle.id)
        async with Reader(run) as reader:
            await reader.sees(lambda look: look.next == 3)
            waiting = asyncio.create_task(run.wait_turn(message="m"))
            await update(handle, "send", {"content": "2", "id": "m"})
            wire.cut()
            look = await reader.sees(lambda look: look.why)
            assert look.why == f"the server at {wire.address} is away: trying again"
            assert await answered(handle, "3") == "c"
            await wire.mend()
            turn = await waiting
            assert turn.output
            assert turn.output.value == "b"
            await closed(handle)
            await reader.all(handle)
        assert wire.connections > 1


async def test_text_of_an_attempt_that_failed_is_never_shown_beside_the_next(client: Client) -> None:
    stammer = Stammer()
    async with working(client, stammer.app) as runs:
        handle = await runs.start("stammer", "go")
        async with Reader(RunHandle(client, handle.id)) as reader:
            await reader.sees(said("one two ", attempt=1))
            stammer.breaks.set()
            await reader.sees(said("one two ", attempt=2))
            stammer.ends.set()
            await reader.all(handle)
        shown = [(live.attempt, live.text) for look in reader.looks for live in look.live]
        assert {text for attempt, text in shown if attempt == 2} <= {"", "one ", "one two ", "one two three"}
        assert [attempt for attempt, _ in shown] == sorted(attempt for attempt, _ in shown)
        for look in reader.looks:
            answers = [entry for entry in look.entries if entry["kind"] == "response"]
            assert not (answers and look.live), "an answer beside its own live text would be shown twice"


def said(text: str, attempt: int) -> Callable[[Progress], bool]:
    """Whether an activity says so, in that attempt."""
    return lambda look: any((live.text, live.attempt) == (text, attempt) for live in look.live)


async def test_following_writes_no_history(client: Client) -> None:
    async def length(app: App, followed: bool) -> int:
        async with working(client, app) as runs:
            handle = await runs.start("shop", "go")
            if followed:
                async with Reader(RunHandle(client, handle.id)) as reader:
                    await handle.result()
                    await reader.all(handle)
                    assert len(reader.looks) > 1
            await handle.result()
            return len((await handle.fetch_history()).events)

    def app() -> App:
        return shop(Script({"look": {"n": 1}}, {"look": {"n": 2}}, "done"), [])

    assert await length(app(), followed=True) == await length(app(), followed=False)


async def test_what_another_try_does_not_mend_is_raised(client: Client) -> None:
    run = PerdureClient(client).run("nothing")
    for asking in (run.wait_turn(), anext(run.follow()), run.length(), run.check_open()):
        with pytest.raises(NoSuchRun):
            await asking
