"""Any session: the same on a server that lets it be and on one on which it continues as new all the time."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from temporalio.client import Client

from tests.talks.talk import Call, Interrupt, Push, Restart, Send, Step, Talk, Turn, talks
from tests.talks.verdict import played

EXAMPLES = int(os.environ.get("PERDURE_SESSION_EXAMPLES", "12"))
pytestmark = pytest.mark.timeout(300 + 10 * EXAMPLES)
"""Hypothesis takes up to five minutes to shrink an example that fails."""
real_server = settings(
    deadline=None,
    print_blob=True,
    max_examples=EXAMPLES,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
EVERYTHING = Talk(
    (
        Turn((Step((Call("look"), Call("quorum", "edited"), Call("gated_alone")), rest=(Push(), Send("steer"))),)),
        Turn((Step((Call("hold"), Call("gated", "no", "signal")), rest=(Send("interrupt", "signal"),)),)),
        Turn((Step((Call("moody"), Call("write")), asked=(Restart(2),)),), fails=True),
    ),
    cache=0,
)
HELD = Talk((Turn((Step((Call("hold"), Call("gated")), rest=(Restart(1), Interrupt("signal"))),)),), prompt=False)


@pytest.fixture(scope="module")
def quiet() -> Generator[None]:
    """Activities fail all the time: nobody reads it."""
    log = logging.getLogger("temporalio.activity")
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(logging.NOTSET)


@real_server
@example(talk=EVERYTHING)
@example(talk=HELD)
@given(talk=talks)
async def test_a_session_is_the_same_however_it_is_run(
    client: Client, rolling_client: Client, quiet: None, talk: Talk
) -> None:
    """An ordinary worker; one that is restarted and perhaps keeps nothing; the same while it rolls over."""
    (ordinary, one), (restarted, still), (rolling, many) = await asyncio.gather(
        played(client, talk),
        played(client, talk, cache=talk.cache, restarts=True),
        played(rolling_client, talk, cache=talk.cache, restarts=True, pushes=True),
    )
    assert restarted == ordinary
    assert rolling == ordinary
    assert one == still == 1
    assert many > 2 or talk != EVERYTHING, "a session of three long turns rolls over again and again"
