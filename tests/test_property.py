"""Any calls, any decisions, in any order: the rules of approvals hold on the real server."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from temporalio.client import Client

from tests.decisions.drawn import scenarios
from tests.decisions.play import House
from tests.decisions.scenario import Call, Event, Op, Scenario, Step, Wave

EXAMPLES = int(os.environ.get("PERDURE_EXAMPLES", "200"))
pytestmark = pytest.mark.timeout(300 + 3 * EXAMPLES)
"""Hypothesis takes up to five minutes to shrink an example that fails."""
real_server = settings(
    deadline=None,
    print_blob=True,
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
async def house(client: Client) -> AsyncGenerator[House]:
    """The workers of this module, with a quiet log: what fails on purpose would bury the example that fails."""
    log = logging.getLogger("temporalio.activity")
    log.setLevel(logging.CRITICAL)
    async with House.opened(client) as opened:
        yield opened
    log.setLevel(logging.NOTSET)


EVENTS: list[Event] = ["none", "restart", "expiry", "cancel", "cold", "restart", "expiry", "cold", "cache 0"]
WAYS: list[Event] = ["none", "cold", "cache 0"]
OVERTAKEN = Wave((Op(via="signal", edit='{"n": 7}'), Op(via="signal", by="bob")), together=True)
"""Whoever decides while other arguments are being checked has decided on what is no longer shown."""


@settings(real_server, max_examples=EXAMPLES)
@example(scenario=Scenario((Step((Call("quorum"),), waves=(OVERTAKEN,)),)))
@given(scenario=scenarios(EVENTS))
async def test_the_rules_hold(house: House, scenario: Scenario) -> None:
    """Whatever is asked for and sent: see the module."""
    await house.played(scenario)


@settings(real_server, max_examples=max(1, EXAMPLES // 20))
@given(scenario=scenarios(["none"], together=False))
async def test_the_outcome_does_not_depend_on_the_worker(house: House, scenario: Scenario) -> None:
    """Case by case the same with an ordinary worker, with a new one at a pause, and without a cache."""
    one, *others = await asyncio.gather(*(house.played(replace(scenario, event=way)) for way in WAYS))
    assert others == [one for _ in others]
