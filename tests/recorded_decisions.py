"""The scenario of `tests/histories/decided.json`: a run in which everything about decisions happens."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any, cast

from pydantic_ai import Agent, CallDeferred, FunctionToolset
from pydantic_ai.messages import ModelResponsePart, ToolCallPart

from perdure import (
    App,
    Approval,
    DurableAgent,
    ExternalCall,
    Notification,
    Principal,
    TokenUse,
    ToolPolicy,
)
from perdure.contracts import VerbName, args_digest
from perdure.tokens import make_token
from tests.harness import Handle, Runs, until
from tests.scripts import Script


def decided_app() -> App:
    """An app in which everything about decisions happens: a verifier, a notifier, a dispatcher."""

    async def verifier(token: str, use: TokenUse) -> Principal:
        return Principal(name=claims_of(token)["sub"], groups=["finance"])

    async def notifier(notification: Notification) -> None: ...

    async def dispatch(call: ExternalCall) -> None: ...

    made = FunctionToolset[None](id="decided")

    @made.tool_plain
    async def pay(n: int) -> str:
        """Pay."""
        return f"paid {n}"

    @made.tool_plain
    async def order(n: int) -> str:
        """Ordered elsewhere."""
        raise CallDeferred

    steps: list[list[ModelResponsePart]] = [
        [ToolCallPart("pay", {"n": 1}), ToolCallPart("pay", {"n": 2}), ToolCallPart("order", {"n": 3})],
        [ToolCallPart("pay", {"n": 4}), ToolCallPart("order", {"n": 5})],
    ]
    last = Approval(expires_after=timedelta(seconds=0.2))
    first = Approval(
        approvers=["group:finance"],
        quorum=2,
        allow_edit=True,
        expires_after=timedelta(seconds=3),
        reminders=[timedelta(seconds=0.1)],
        on_expiry="escalate",
        escalate_to=last,
    )
    policies = {
        "pay": ToolPolicy(approval=first),
        "order": ToolPolicy(dispatch=dispatch, wait=0.5, result=dict[str, int]),
    }
    make: Any = Agent
    agent = make(Script(*steps, "done").model, name="decided", toolsets=[made])
    return App(agents=[DurableAgent(agent, policies=policies)], verifier=verifier, notifier=notifier)


def claims_of(token: str) -> dict[str, Any]:
    """What a token says; nobody is deceived here."""
    body = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


async def decided(runs: Runs) -> Handle:
    """A run with votes, an edit, a denial, a result, refusals, reminders, an escalation and expiries."""
    handle = await runs.start("decided", "go")

    async def rows(*tools: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []

        async def there() -> bool:
            found[:] = await handle.query("pending")
            return [row["tool"] for row in found] == list(tools)

        await until(there)
        return found

    def token(name: str, row: dict[str, Any], verb: VerbName, about: Any = None) -> str:
        digest = row["digest"] if about is None else args_digest(about)
        key = {"kty": "oct", "k": base64.urlsafe_b64encode(b"k" * 32).decode(), "kid": name, "alg": "HS256"}
        return make_token(key, workflow_id=handle.id, call=row["call"], decision=verb, digest=digest)

    async def send(verb: VerbName, name: str, row: dict[str, Any], about: Any = None, **fields: Any) -> Any:
        sent = {"call": row["call"], "token": token(name, row, verb, about), **fields}
        return await cast("Any", handle).execute_update(verb, sent)

    one, two, ordered = await rows("pay", "pay", "order")
    await send("complete", "shop", ordered, {"result": {"x": 1}}, result={"x": 1})
    edited = await send("approve", "ann", one, {"n": 10}, args={"n": 10})
    await send("approve", "bob", {**one, "call": edited["call"]}, {"n": 10})
    await handle.signal("deny", {"call": two["call"], "token": token("bob", two, "deny"), "reason": "no"})
    await handle.signal("approve", {"call": two["call"], "token": token("ann", two, "approve")})
    await handle.result()
    return handle
