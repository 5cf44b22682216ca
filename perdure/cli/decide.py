"""`perdure approve`, `deny` and `complete`: decide what waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Address, Namespace, Profile, RunId

if TYPE_CHECKING:
    from perdure.client import RunHandle
    from perdure.contracts import Decided

Call = Annotated[str, typer.Argument(metavar="CALL", help="The whole key of the call, as `perdure inbox` shows it.")]
By = Annotated[str, typer.Option(help="Who decides: a claim, and recorded as one.")]
Reason = Annotated[str, typer.Option(help="Why; of a denial the model is told it.")]


def approve(
    id: RunId,
    call: Call,
    by: By = "",
    reason: Reason = "",
    edit: Annotated[str | None, typer.Option(metavar="JSON", help="Other arguments, all of them.")] = None,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Let a call run."""
    args = None if edit is None else _json("--edit", edit)
    _decide(id, lambda run: run.approve(call, by=by, reason=reason, args=args), address, namespace, profile)


def deny(
    id: RunId,
    call: Call,
    by: By = "",
    reason: Reason = "",
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Don't let a call run; the model is told the reason."""
    _decide(id, lambda run: run.deny(call, by=by, reason=reason), address, namespace, profile)


def complete(
    id: RunId,
    call: Call,
    result: Annotated[str | None, typer.Option(metavar="JSON", help="The result.")] = None,
    error: Annotated[str | None, typer.Option(help="What went wrong, instead of a result.")] = None,
    by: By = "",
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Give the result of a call that is made outside, or the answer to a question."""
    if (result is None) == (error is None):
        raise typer.BadParameter("give --result or --error, one of them")
    value = None if result is None else _json("--result", result)
    _decide(id, lambda run: run.complete(call, value, error=error, by=by), address, namespace, profile)


def _decide(id: str, how: Callable[[RunHandle], Awaitable[Decided]], *where: str | None) -> None:
    async def run() -> Decided:
        from perdure.client import connect

        address, namespace, profile = where
        client = await connect(address=address, namespace=namespace, profile=profile)
        return await how(client.run(id))

    with one_line_errors():
        answer = asyncio.run(run())
    needed = f", {answer.needed} more needed" if answer.needed else ""
    print(f"{answer.outcome} {answer.call}{needed}")


def _json(option: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option} isn't JSON: {error}") from None
