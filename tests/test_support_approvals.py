"""The support example's large refunds under perdure: what its offline model says of a refund that isn't made."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.client import Client

from examples.support.agent import Deps, support
from examples.support.app import is_large
from examples.support.store import Store
from perdure import App, Approval, DurableAgent, ToolPolicy
from tests.deciding import pending, update
from tests.harness import working


def gated(folder: Path, approval: Approval) -> App:
    """The support agent with other terms of approval."""
    store = Store.open(folder / "support.db")

    def deps(params: Any, resources: Any) -> Deps:
        return Deps(store)

    policies = {"refund": ToolPolicy(effect="idempotent", approval=approval)}
    return App(agents=[DurableAgent(support, deps=deps, policies=policies)])


async def test_the_offline_model_says_that_nobody_decided(client: Client, tmp_path: Path) -> None:
    soon = Approval(when=is_large, expires_after=timedelta(seconds=0.2))
    async with working(client, gated(tmp_path, soon)) as runs:
        result = await runs.run("support", "Refund A-1002 and A-1013.")
    assert result["output"]["reply"] == (
        "The refund of $129.00 for order A-1002 was not made: nobody decided it in time. Please ask again. "
        "I refunded $37.90 for order A-1013 (refund R-1)."
    )
    assert [row["event"] for row in result["audit"]] == ["asked", "expired"]


async def test_nobody_is_asked_about_a_refund_that_cannot_be_made(client: Client, tmp_path: Path) -> None:
    async with working(client, gated(tmp_path, Approval(when=is_large))) as runs:
        result = await runs.run("support", "Refund $500 of A-1013.")
    assert result["output"]["reply"].startswith("I could not refund order A-1013: 50000 cents can't be refunded: 3790")
    assert result["audit"] == []


async def test_the_offline_model_says_a_denial_without_a_reason(client: Client, tmp_path: Path) -> None:
    async with working(client, gated(tmp_path, Approval(when=is_large))) as runs:
        handle = await runs.start("support", "Refund A-1002.")
        (row,) = await pending(handle, 1)
        await update(handle, "deny", {"call": row["call"]})
        assert (await handle.result())["output"] == {
            "reply": "The refund of $129.00 for order A-1002 was not approved.",
            "order_id": "A-1002",
            "refunded_cents": 0,
        }
