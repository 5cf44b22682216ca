"""The scenario of `tests/histories/limits_and_models.json`: a run that asks at limits, and is given another model."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from pydantic_ai import Agent

from perdure import App, Approval, DurableAgent, Limits
from tests.harness import Handle, Runs, until
from tests.scripts import Script

LIMITS = Limits(requests=1, tool_calls=1, deadline=timedelta(days=1))


def limits_app() -> App:
    """An agent that reaches its limits before a request and before the calls of a step."""

    def look(n: int) -> int:
        return n

    script = Script({"look": {"n": 1}}, {"look": {"n": 2}}, "done")
    agent = Agent(script.model, name="limits", tools=[look])
    approval = Approval(approvers=["ann"], expires_after=timedelta(hours=1), reminders=[timedelta(minutes=30)])
    return App(
        agents=[
            DurableAgent(
                agent,
                models={"other": script.model},
                limits=LIMITS,
                on_limit="ask",
                limit_approval=approval,
                deadline_counts_waiting=False,
            )
        ]
    )


async def limits_and_models(runs: Runs) -> Handle:
    """A run that is raised too little, then enough, by update and by signal."""
    handle: Any = await runs.start("limits", "go")

    async def waits(key: str, allowed: int) -> None:
        async def there() -> bool:
            rows = await handle.query("pending")
            return [(row["call"], row["args"]["allowed"]) for row in rows] == [(key, allowed)]

        await until(there)

    async def send(verb: str, **sent: Any) -> None:
        await handle.execute_update(verb, {**sent, "by": "ann"})

    await waits("limit-1", 1)
    await send("set_model", model="other")
    await send("set_limits", limits={"cost": "2", "unpriced_requests": None})
    await handle.signal("set_limits", {"limits": {"requests": 9}, "by": "eve"})
    await send("set_limits", limits={"requests": 3})
    await waits("limit-2", 1)
    await handle.signal("set_limits", {"limits": {"tool_calls": 2}, "by": "ann"})
    await handle.result()
    return cast("Handle", handle)
