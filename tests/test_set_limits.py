"""`set_limits` in an open run: who may, who is told, what `perdure` says of it, and what is declared wrong."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent
from temporalio.client import Client

from perdure import App, Approval, DeclarationError, DurableAgent, Limits, Notification
from perdure.client import PerdureClient, RunClosed
from perdure.contracts import LIMITS, args_digest
from perdure.tokens import SignedTokens, make_token
from tests.command import perdure
from tests.deciding import pending, refused, update
from tests.harness import Handle, until, working
from tests.scripts import Script
from tests.tokens import KEYS, PUBLIC


def asking(told: list[Notification] | None = None, approval: Approval | None = None, **options: Any) -> App:
    """An agent whose first request is one too many."""

    async def tell(notification: Notification) -> None:
        assert told is not None
        told.append(notification)

    agent = Agent(Script("done").model, name="asks")
    durable = DurableAgent(agent, limits=Limits(requests=0), on_limit="ask", limit_approval=approval)
    return App(agents=[durable], notifier=tell if told is not None else None, **options)


async def test_only_who_is_verified_and_named_sets_limits(client: Client, cache: int) -> None:
    app = asking(approval=Approval(approvers=["group:finance"], forbid_self=True), verifier=SignedTokens(PUBLIC))

    def token(name: str, handle: Handle, limits: dict[str, Any]) -> str:
        digest = args_digest(limits)
        return make_token(KEYS[name][0], workflow_id=handle.id, call=LIMITS, decision="set_limits", digest=digest)

    more = {"requests": 1}
    async with working(client, app, cache=cache) as runs:
        handle = await runs.start("asks", "go", by="zoe")
        await pending(handle, 1)
        assert "without a 'token'" in await refused(handle, "set_limits", {"limits": more, "by": "ann"})
        eve = {"limits": more, "token": token("eve", handle, more)}
        assert "NotAllowed: 'eve' may not set limits" in await refused(handle, "set_limits", eve)
        other = {"limits": more, "token": token("ann", handle, {"requests": 2})}
        assert "isn't made for this decision: digest differ" in await refused(handle, "set_limits", other)
        await update(handle, "set_limits", {"limits": more, "token": token("ann", handle, more)})
        assert (await handle.result())["output"] == "done"
        rows = [row for row in await handle.query("audit") if row["event"] == "set_limits"]
    assert [(row["by"], row["verified"], row["groups"]) for row in rows] == [("ann", True, ["finance"])]


async def test_whoever_started_a_run_may_be_forbidden_to_raise_its_limits(client: Client) -> None:
    async with working(client, asking(approval=Approval(forbid_self=True))) as runs:
        assert (await runs.failure("asks", "go")).type == "InvalidRequest"
        handle = await runs.start("asks", "go", by="zoe")
        await pending(handle, 1)
        for by in ("zoe", "Zoe", ""):
            assert "NotAllowed" in await refused(handle, "set_limits", {"limits": {"requests": 1}, "by": by})
        await update(handle, "set_limits", {"limits": {"requests": 1}, "by": "ann"})
        await handle.result()


async def test_people_are_told_of_a_limit(client: Client, cache: int) -> None:
    told: list[Notification] = []
    async with working(client, asking(told, Approval(approvers=["ann"])), cache=cache) as runs:
        handle = await runs.start("asks", "go")
        await pending(handle, 1)
        await until(lambda: len(told) == 1)
        await update(handle, "set_limits", {"limits": {"requests": 1}, "by": "ann", "reason": "fine"})
        await handle.result()
    rows = [(one.event, one.kind, one.call, one.outcome, one.by, one.reason) for one in told]
    assert rows == [("asked", "limit", "limit-1", "", "", ""), ("decided", "limit", "limit-1", "raised", "ann", "fine")]
    assert (told[0].args, told[0].approvers) == (
        {"limit": "requests", "used": 0, "allowed": 0, "needed": 1},
        ["ann"],
    )


async def test_the_commands_show_and_set(client: Client) -> None:
    address = client.service_client.config.target_host
    async with working(client, asking()) as runs:
        handle = await runs.start("asks", "go")
        await pending(handle, 1)
        inbox = (await perdure("inbox", address=address)).out
        assert handle.id in inbox
        assert '{"limit": "requests", "used": 0, "allowed": 0, "needed": 1}' in inbox
        wrong = await perdure("set-limits", handle.id, "--requests", "many", address=address)
        assert (wrong.code, "limits.requests" in wrong.err) == (2, True)
        assert (await perdure("set-limits", handle.id, address=address)).code == 2
        no_model = await perdure("set-model", handle.id, "huge", address=address)
        assert (no_model.code, "has no model 'huge'" in no_model.err) == (1, True)
        model = await perdure("set-model", handle.id, "--by", "ann", address=address)
        assert model.out.startswith("the next request goes to function:")
        few = await perdure("set-limits", handle.id, "--requests", "0", "--limit", "turn_cost=none", address=address)
        assert few.out == 'set {"requests": 0, "turn_cost": null}; it still waits at limit-1: see `perdure inbox`\n'
        done = await perdure("set-limits", handle.id, "--requests", "2", "--by", "ann", address=address)
        assert done.out == 'set {"requests": 2}\n'
        await handle.result()
        audit = (await perdure("show", handle.id, "--audit", address=address)).out
        assert "set_limits" in audit
        with pytest.raises(RunClosed):
            await PerdureClient(client).run(handle.id).set_model(None)


def test_declarations_that_mean_nothing_are_refused() -> None:
    agent = Agent(Script("done").model, name="asks")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"on_limit": "pause"}, r"on_limit='pause' is none of \('fail', 'ask'\)"),
        ({"limit_approval": Approval(quorum=2)}, "takes no quorum"),
        ({"limit_approval": Approval(allow_edit=True), "on_limit": "ask"}, "takes no quorum, when or allow_edit"),
    ]
    for options, why in wrong:
        with pytest.raises(DeclarationError, match=why):
            DurableAgent(agent, **options)
    with pytest.raises(DeclarationError, match="limit_approval asks"):
        App(agents=[DurableAgent(agent, on_limit="ask", limit_approval=Approval(approvers=["group:x"]))])
