"""Record the histories of sessions: a chain of runs that continue as new, and turns that were interrupted.

`make histories` runs it after `tests.record_histories`; see there.
"""

from __future__ import annotations

import asyncio

from tests.conftest import ROLLING, server
from tests.deciding import pending
from tests.gate import Gate
from tests.harness import chain, until, working
from tests.record_histories import write_history
from tests.roll_over_scenarios import SCENARIOS
from tests.rolling import Office
from tests.sessions import SESSION, closed, send, turn


async def record() -> None:
    """Run both scenarios, and write the history of each run."""
    async with server(ROLLING) as environment:
        scenario, turns = SCENARIOS["half a quorum"]
        office, gate = Office(*turns), Gate()
        async with working(environment.client, office.app()) as runs:
            handle = await runs.start("office", "go", **SESSION)
            await scenario(handle, True)
            for number, history in enumerate(reversed(await chain(handle)), start=1):
                write_history(f"continued_{number}", history)
        async with working(environment.client, gate.app()) as runs:
            handle = await runs.start("gate", "write", **SESSION)
            await until(lambda: len(gate.said) == 3)
            await send(handle, "work", when_busy="interrupt")
            await pending(handle, 1)
            await until(lambda: bool(gate.ran))
            await send(handle, "last", when_busy="interrupt", id="last")
            await turn(handle, message="last")
            await closed(handle)
            for number, history in enumerate(reversed(await chain(handle)), start=1):
                write_history(f"interrupted_{number}", history)


if __name__ == "__main__":
    asyncio.run(record())
