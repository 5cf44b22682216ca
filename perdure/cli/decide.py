"""`perdure approve`, `deny` and `complete`: decide what waits."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Address, Call, Namespace, Profile, RunId, json_option

if TYPE_CHECKING:
    from perdure.client import RunHandle
    from perdure.contracts import Decided, Json, VerbName

By = Annotated[str, typer.Option(help="Who decides: a claim, and recorded as one. Default with a token: its owner.")]
Reason = Annotated[str, typer.Option(help="Why; of a denial the model is told it.")]
Token = Annotated[
    str, typer.Option(help="Shows who decides, as `perdure token` makes it. Default: made with the key in PERDURE_KEY.")
]


def approve(
    id: RunId,
    call: Call,
    by: By = "",
    reason: Reason = "",
    edit: Annotated[bool, typer.Option("--edit", help="Approve the arguments as you leave them in $EDITOR.")] = False,
    args: Annotated[str | None, typer.Option(metavar="JSON", help="Other arguments, all of them.")] = None,
    token: Token = "",
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Let a call run."""
    if edit and args is not None:
        raise typer.BadParameter("give --edit or --args, not both")
    sent = {"by": by, "reason": reason, "token": token, "args": None if args is None else json_option("--args", args)}
    _decide("approve", id, call, sent, edit, address, namespace, profile)


def deny(
    id: RunId,
    call: Call,
    by: By = "",
    reason: Reason = "",
    token: Token = "",
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Don't let a call run; the model is told the reason."""
    sent = {"by": by, "reason": reason, "token": token}
    _decide("deny", id, call, sent, False, address, namespace, profile)


def complete(
    id: RunId,
    call: Call,
    result: Annotated[str | None, typer.Option(metavar="JSON", help="The result.")] = None,
    error: Annotated[str | None, typer.Option(help="What went wrong, instead of a result.")] = None,
    by: By = "",
    token: Token = "",
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Give the result of a call that is made outside, or the answer to a question."""
    if (result is None) == (error is None):
        raise typer.BadParameter("give --result or --error, one of them")
    what = {"error": error} if result is None else {"result": json_option("--result", result)}
    sent = {**what, "by": by, "token": token}
    _decide("complete", id, call, sent, False, address, namespace, profile)


def _decide(verb: VerbName, id: str, call: str, sent: Json, edit: bool, *where: str | None) -> None:
    async def run() -> str:
        from perdure.cli.connecting import connect
        from perdure.errors import InvalidRequest

        address, namespace, profile = where
        handle = (await connect(address=address, namespace=namespace, profile=profile)).run(id)
        row = await _row(handle, call)
        if edit:
            if row is None:
                raise InvalidRequest(f"no call {call!r} waits, so there is nothing to edit")
            sent["args"] = edited(row["args"])
        if not sent["token"] and row is not None and row["verifies"]:
            sent["token"] = own_token(handle.id, row, verb, sent)
        return said(row, sent, await handle.decide(verb, call, sent))

    with one_line_errors():
        print(asyncio.run(run()))


async def _row(handle: RunHandle, call: str) -> Json | None:
    """What waits under the key. Asked first: with no worker the update itself would wait for one, silently."""
    return next((row for row in await handle.pending() if row["call"] == call), None)


def own_token(id: str, row: Json, verb: VerbName, sent: Json) -> str:
    """A token made with the person's own key, where the environment names one."""
    import os

    if not os.environ.get("PERDURE_KEY"):
        return ""
    from perdure.cli.token import token_for

    return token_for(id, row, verb, sent)


def said(row: Json | None, sent: Json, answer: Decided) -> str:
    """The answer in plain words."""
    from perdure.cli.text import plain, printable

    what = f"{row['tool']} {plain(sent.get('args') or row['args'])}" if row else answer.call
    match answer.outcome:
        case "approved":
            text = f"approved {answer.call}: {what} runs now"
        case "denied":
            text = f"denied {answer.call}: {what} doesn't run, and the model is told why"
        case "completed":
            text = f"completed {answer.call}: the run goes on with it"
        case "edited":
            text = f"edited {answer.call}: this is its key from now on; somebody else has to approve it"
        case "voted":
            text = f"voted for {answer.call}: {answer.needed} more needed before {what} runs"
    return printable(text)


def edited(args: Any) -> Any:
    """The arguments as the person leaves them in their editor."""
    import click

    text = click.edit(json.dumps(args, indent=2, ensure_ascii=False), extension=".json")
    if text is None:
        raise typer.BadParameter("nothing was saved in the editor, so nothing was sent")
    return json_option("--edit", text)
