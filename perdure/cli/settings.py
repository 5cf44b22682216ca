"""`perdure set-limits` and `set-model`: change what an open run may use, and which model it asks."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Address, Namespace, Profile, RunId

if TYPE_CHECKING:
    from perdure.contracts import Limits

By = Annotated[str, typer.Option(help="Who does it: a claim, and recorded as one. Default with a token: its owner.")]
LIMIT_HELP = (
    "One limit as NAME=VALUE, for example turn_cost=0.5 or deadline=PT2H; NAME=none removes it. May be repeated."
)


def set_limits(
    id: RunId,
    requests: Annotated[str | None, typer.Option(metavar="N", help="Model requests of the whole run.")] = None,
    tool_calls: Annotated[str | None, typer.Option(metavar="N", help="Tool calls of the whole run.")] = None,
    total_tokens: Annotated[str | None, typer.Option(metavar="N", help="Tokens of the whole run.")] = None,
    cost: Annotated[str | None, typer.Option(metavar="USD", help="US dollars of the whole run.")] = None,
    deadline: Annotated[str | None, typer.Option(metavar="ISO8601", help="From the start, as PT2H.")] = None,
    limit: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help=LIMIT_HELP)] = None,
    by: By = "",
    reason: Annotated[str, typer.Option(help="Why; kept in the audit.")] = "",
    token: Annotated[str, typer.Option(help="Shows who does it. Default: made with the key in PERDURE_KEY.")] = "",
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Set limits of an open run, to absolute values; `none` removes one. A run that waits for one of them goes on."""
    named = {"requests": requests, "tool_calls": tool_calls, "total_tokens": total_tokens, "cost": cost}
    given = {name: value for name, value in {**named, "deadline": deadline}.items() if value is not None}
    given |= dict(_pair(one) for one in limit or [])
    if not given:
        raise typer.BadParameter("name at least one limit, for example --requests 100")

    async def run() -> str:
        from perdure.cli.connecting import connect

        handle = (await connect(address=address, namespace=namespace, profile=profile)).run(id)
        limits = _limits(given)
        answer = await handle.set_limits(limits, by=by, reason=reason, token=token or _own_token(id, limits))
        waits = f"; it still waits at {', '.join(answer.waits)}: see `perdure inbox`" if answer.waits else ""
        return f"set {json.dumps(limits.given())}{waits}"

    with one_line_errors():
        print(asyncio.run(run()))


def set_model(
    id: RunId,
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="A key of the agent's models. Default: its own.")
    ] = None,
    by: By = "",
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Let an open run ask another of its agent's models, from the next request on."""

    async def run() -> str:
        from perdure.cli.connecting import connect
        from perdure.cli.text import printable

        handle = (await connect(address=address, namespace=namespace, profile=profile)).run(id)
        answer = await handle.set_model(key, by=by)
        return printable(f"the next request goes to {answer.id or answer.model}")

    with one_line_errors():
        print(asyncio.run(run()))


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise typer.BadParameter(f"--limit {text!r} isn't NAME=VALUE")
    return name, value


def _limits(given: dict[str, str]) -> Limits:
    from perdure.contracts import Limits, validation_problems
    from perdure.errors import InvalidRequest

    values: dict[str, Any] = {name: None if value == "none" else value for name, value in given.items()}
    try:
        return Limits.model_validate(values)
    except ValueError as error:
        raise InvalidRequest(validation_problems(error, "limits")) from None


def _own_token(id: str, limits: Limits) -> str:
    """A token made with the person's own key, where the environment names one."""
    from perdure.contracts import LIMITS, args_digest

    if not os.environ.get("PERDURE_KEY"):
        return ""
    from perdure.tokens import KEY_VARIABLE, make_token, read_json

    digest = args_digest(limits.given())
    return make_token(read_json(KEY_VARIABLE), workflow_id=id, call=LIMITS, decision="set_limits", digest=digest)
