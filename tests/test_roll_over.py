"""Continue-as-new at every moment of rest: whoever looks at a run, decides or waits, doesn't notice.

Each scenario of `tests.roll_over_scenarios` is done on a server where runs roll over, and on the ordinary one.
"""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import Client

from tests.harness import chain, working
from tests.roll_over_scenarios import SCENARIOS
from tests.rolling import Office, compared, pushed, run_ids
from tests.sessions import SESSION, answered, closed, turn


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_run_that_rolls_over_comes_to_the_same(
    client: Client, rolling_client: Client, cache: int, name: str
) -> None:
    scenario, turns = SCENARIOS[name]
    found: list[dict[str, Any]] = []
    for server, rolls in ((client, False), (rolling_client, True)):
        office = Office(*turns)
        async with working(server, office.app(), cache=cache) as runs:
            handle = await runs.start("office", "go", **SESSION)
            await scenario(handle, rolls)
            found.append(await compared(handle, office))
            assert (len(await chain(handle)) > 1) == rolls
    assert found[0] == found[1]


async def test_a_session_rolls_over_between_turns_and_steps(rolling_client: Client, cache: int) -> None:
    office = Office("hello", {"look": {"n": 1}}, {"look": {"n": 2}}, {"look": {"n": 3}}, "seen", "bye")
    async with working(rolling_client, office.app(), cache=cache) as runs:
        handle = await runs.start("office", "hi", **SESSION)
        assert await answered(handle, "look") == "seen"
        assert await answered(handle, "bye", id="m3") == "bye"
        result = await closed(handle)
        assert (result["output"], result["turns"], result["steps"]) == ("bye", 3, 6)
        assert office.ran == [("look", 1), ("look", 2), ("look", 3)]
        assert len(await chain(handle)) > 2


async def test_an_idle_session_rolls_over_once_and_not_for_nothing(rolling_client: Client, cache: int) -> None:
    office = Office("hello", "bye")
    async with working(rolling_client, office.app(), cache=cache) as runs:
        handle = await runs.start("office", "hi", session={"idle_timeout": "PT1H"})
        await turn(handle, turn=1)
        await pushed(handle, True)
        rolled = await run_ids(handle)
        assert len(await chain(handle)) == 2
        for _ in range(10):
            await handle.signal("nothing", {})
        assert (await handle.query("status"))["state"] == "idle"
        assert await run_ids(handle) == rolled, "nothing was done, but it rolled over"
        assert await answered(handle, "bye") == "bye"
        assert (await closed(handle))["turns"] == 2
