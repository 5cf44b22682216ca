"""What must hold of a session that was played, and what of it must not depend on server, cache or worker."""

from __future__ import annotations

import json
import re
from collections import Counter
from operator import itemgetter
from typing import Any

from temporalio.client import Client

from perdure.contracts import TurnView
from tests.harness import chain, check_run, messages
from tests.talks.play import Player
from tests.talks.stage import Row, said, text
from tests.talks.talk import GATED, Talk

TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)?")


async def played(client: Client, talk: Talk, **how: Any) -> tuple[Row, int]:
    """Play a session, check it, and return what must be the same in every way; and how many runs it took."""
    player = Player(client, talk, **how)
    try:
        await player.play()
        turns = [await player.run.turn(number) for number in range(1, len(player.line.turns) + 1)]
        assert [(turn.state, turn.messages) for turn in turns] == [(one.how, one.messages) for one in player.line.turns]
        entries = await player.run.transcript()
        await player.run.close()
        result = await player.handle.result()
        await check(player, result)
        return outcome(player, turns, entries, result), len(await chain(player.handle))
    finally:
        for held in player.log.held.values():
            held.set()
        await player.worker.aclose()


async def check(player: Player, result: Row) -> None:
    """The invariants of every run, and that messages, calls and requests are those of the script."""
    await check_run(player.handle, sandboxed=False)
    log, line = player.log, player.line
    assert log.asks.empty(), "the model was asked once more"
    assert Counter(found for found in log.ran if found[0] in GATED) == Counter(player.allowed)
    assert all(count == 1 for count in Counter(log.ran).values()), log.ran
    assert len(set(log.keys)) == len(log.keys)
    assert said(await messages(player.handle)) == [text(id) for id in line.said]
    assert result["turns"] == len(line.turns)
    status = await player.run.status()
    assert (status.state, status.queue, status.pending, status.open_calls) == ("done", 0, [], [])


def outcome(player: Player, turns: list[TurnView], entries: list[Row], result: Row) -> Row:
    """Everything that a session came to, without times. What happens to two calls at once has no order."""
    result["audit"].sort(key=itemgetter("call"))
    found: Row = {
        "entries": entries,
        "result": result,
        "turns": [turn.model_dump(mode="json") for turn in turns],
        "ran": sorted(player.log.ran),
    }
    return json.loads(TIMES.sub("T", json.dumps(found)))
