"""A run that another one starts has a share of what that has left, and what it used counts there, however it ended."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import App, Limits
from perdure.contracts import Usage
from perdure.workflows import rooms
from tests.deciding import answers, pending, refused, update
from tests.family import boss, children, firm, staff
from tests.harness import check_run, working
from tests.scripts import Script


@pytest.mark.parametrize(
    ("limits", "run", "turn", "expected"),
    [
        ({"requests": 10}, {"requests": 3}, {"requests": 3}, {"requests": 6}),
        ({"requests": 10, "turn_requests": 4}, {"requests": 3}, {"requests": 1}, {"requests": 2}),
        ({"requests": 1}, {"requests": 1}, {"requests": 1}, {"requests": 0}),
        ({"tool_calls": 5}, {"tool_calls": 2}, {"tool_calls": 2}, {"tool_calls": 2}),
        ({"total_tokens": 100}, {"input_tokens": 60, "output_tokens": 10}, {}, {"total_tokens": 30}),
        ({"input_tokens": 100}, {"input_tokens": 60, "output_tokens": 10}, {}, {"input_tokens": 40}),
        ({"cost": "1.5"}, {"cost": "0.25"}, {}, {"cost": Decimal("1.25"), "unpriced_requests": 0}),
        ({"turn_cost": "1.5"}, {"cost": "0.25"}, {}, {"cost": Decimal("1.5"), "unpriced_requests": 0}),
    ],
)
def test_what_is_left(limits: Any, run: Any, turn: Any, expected: Any) -> None:
    given = Limits.model_validate({"turn_requests": None} | limits)
    room = rooms.share(
        given, Usage.model_validate(run), Usage.model_validate(turn), calls=1, held=[], sharers=1, ends=None
    )
    assert {name: value for name, value in room.model_dump().items() if value is not None} == expected
    assert room.model_fields_set == {*Limits.model_fields}


def test_shares_together_are_what_is_left() -> None:
    limits = Limits(requests=11, total_tokens=100, cost=Decimal(1), turn_requests=None)
    held: list[Limits] = []
    for sharers in (3, 2, 1):
        held.append(
            rooms.share(
                limits, Usage(), Usage(), calls=3, held=held, sharers=sharers, ends=timedelta(seconds=sharers - 2)
            )
        )
    assert [room.requests for room in held] == [3, 3, 4]
    assert [room.total_tokens for room in held] == [33, 33, 34]
    assert sum(room.cost or 0 for room in held) <= 1
    least = timedelta(milliseconds=1)
    assert [room.deadline for room in held] == [timedelta(seconds=1), least, least]


def test_of_each_limit_the_lower() -> None:
    both = rooms.lower(Limits(requests=5, cost=None, turn_requests=None), Limits(requests=None, cost=Decimal(2)))
    assert (both.requests, both.cost, both.turn_requests, both.unpriced_requests) == (5, Decimal(2), 50, 0)


@pytest.mark.parametrize(("looks", "outcome"), [(1, "success"), (2, "failed")])
async def test_a_run_has_what_is_left_and_no_more(client: Client, cache: int, looks: int, outcome: str) -> None:
    ran: list[Any] = []
    clerk = Script(*({"look": {"n": n}} for n in range(looks)), "seen")
    app = firm(Script({"ask_clerk": {"prompt": "look"}}, "done"), clerk, ran, limits=Limits(requests=4))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("boss", "go")
        result = await handle.result()
        failed = "The agent 'clerk' failed: LimitExceeded: the run has made 2 model requests, its limit is 2."
        assert await answers(handle) == {"c0.0": (outcome, "seen" if looks == 1 else failed)}
        assert result["usage"]["requests"] == 4
        (child,) = await children(client, handle)
        await check_run(child)
    assert len(ran) == looks


async def test_runs_that_are_open_at_once_share_what_is_left(client: Client, cache: int) -> None:
    ran: list[Any] = []
    asks: list[Any] = [ToolCallPart("ask_clerk", {"prompt": str(n)}) for n in range(2)]
    clerk = Script({"look": {"n": 1}}, {"look": {"n": 2}}, "seen")
    app = firm(Script(asks, "done"), clerk, ran, limits=Limits(requests=7))
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("boss", "go")
        result = await handle.result()
        assert [outcome for outcome, _ in (await answers(handle)).values()] == ["failed", "success"]
        assert result["usage"]["requests"] == 7
    assert sorted(ran) == [("look", 1), ("look", 1), ("look", 2), ("look", 2)]


async def test_a_run_that_nothing_is_left_for_is_not_started(client: Client) -> None:
    app = firm(Script({"ask_clerk": {"prompt": "look"}}, "done"), Script(), [], limits=Limits(requests=2))
    async with working(client, app) as runs:
        handle = await runs.start("boss", "go")
        assert (await handle.result())["usage"]["requests"] == 2
        assert await answers(handle) == {"c0.0": ("failed", "The call was not made: no requests are left for it.")}
        assert await children(client, handle) == []


async def test_tool_calls_beside_are_held_back(client: Client) -> None:
    ran: list[Any] = []
    clerk = Script([ToolCallPart("look", {"n": 1}), ToolCallPart("look", {"n": 2})], "seen")
    asks: list[Any] = [ToolCallPart("ask_clerk", {"prompt": "a"}), ToolCallPart("ask_clerk", {"prompt": "b"})]
    app = firm(Script(asks, "done"), clerk, ran, limits=Limits(tool_calls=6))
    async with working(client, app) as runs:
        handle = await runs.start("boss", "go")
        result = await handle.result()
        assert result["usage"]["tool_calls"] == 6
        again = await runs.start("boss", "go", limits={"tool_calls": 5})
        result = await again.result()
        assert [outcome for outcome, _ in (await answers(again)).values()] == ["failed", "success"]
        assert result["usage"]["tool_calls"] == 4


async def test_only_the_run_above_may_raise_what_it_had_left(client: Client, cache: int) -> None:
    ran: list[Any] = []
    clerk = Script({"refund": {"n": 1}}, {"look": {"n": 1}}, "seen")
    app = App(
        agents=[
            boss(Script({"ask_clerk": {"prompt": "look"}}, "done"), limits=Limits(requests=4)),
            staff(clerk, ran, on_limit="ask"),
        ]
    )
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("boss", "go")
        (row,) = await pending(handle, 1)
        (child,) = await children(client, handle)
        assert (await child.query("status"))["limits"]["requests"] == 2
        text = await refused(child, "set_limits", {"limits": {"requests": 3}, "by": "ann"})
        assert text == "NotAllowed: limits.requests may not be more than the run that started this one had left (2)"
        await update(child, "approve", {"call": row["call"], "by": "ann"})
        await handle.result()
        (outcome, said) = (await answers(handle))["c0.0"]
        assert (outcome, "LimitExceeded" in said) == ("failed", True)


async def test_an_agents_own_limit_is_asked_for_below(client: Client) -> None:
    ran: list[Any] = []
    clerk = Script({"look": {"n": 1}}, {"look": {"n": 2}}, "seen")
    app = App(
        agents=[
            boss(Script({"ask_clerk": {"prompt": "look"}}, "done")),
            staff(clerk, ran, on_limit="ask", limits=Limits(requests=2)),
        ]
    )
    async with working(client, app) as runs:
        handle = await runs.start("boss", "go")
        (row,) = await pending(handle, 1)
        assert row["kind"] == "limit"
        (child,) = await children(client, handle)
        await update(child, "set_limits", {"limits": {"requests": 3}, "by": "ann"})
        await handle.result()
        assert (await answers(handle))["c0.0"] == ("success", "seen")


async def test_time_that_is_left_goes_down(client: Client) -> None:
    limits = Limits(deadline=timedelta(hours=1))
    app = firm(Script({"ask_clerk": {"prompt": "x"}}, "done"), Script({"refund": {"n": 1}}, "ok"), [], limits=limits)
    async with working(client, app) as runs:
        handle = await runs.start("boss", "go")
        (row,) = await pending(handle, 1)
        (child,) = await children(client, handle)
        assert (await child.query("status"))["limits"]["deadline"].startswith("PT59M")
        await update(child, "deny", {"call": row["call"], "by": "ann"})
        await handle.result()
