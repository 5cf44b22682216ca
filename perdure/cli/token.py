"""`perdure token` and `perdure key`: show who decides, where an app asks for it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Address, Call, Namespace, Profile, RunId, json_option

if TYPE_CHECKING:
    from perdure.contracts import Json, VerbName


def token(
    id: RunId,
    call: Call,
    decision: Annotated[Literal["approve", "deny", "complete"], typer.Argument(help="What it is for.")],
    args: Annotated[str | None, typer.Option(metavar="JSON", help="The edited arguments it approves.")] = None,
    result: Annotated[str | None, typer.Option(metavar="JSON", help="The result it completes with.")] = None,
    error: Annotated[str | None, typer.Option(help="The error it completes with.")] = None,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Print a token for one decision, signed with your key: the file that PERDURE_KEY names. Valid for two minutes."""
    sent: Json = {"error": error} if result is None else {"result": json_option("--result", result)}
    sent |= {"args": None if args is None else json_option("--args", args)}
    with one_line_errors():
        print(asyncio.run(_make(id, call, decision, sent, (address, namespace, profile))))


async def _make(id: str, call: str, decision: VerbName, sent: Json, where: tuple[str | None, ...]) -> str:
    from perdure.cli.connecting import connect
    from perdure.errors import InvalidRequest

    address, namespace, profile = where
    rows = await (await connect(address=address, namespace=namespace, profile=profile)).run(id).pending()
    for row in rows:
        if row["call"] == call:
            return token_for(id, row, decision, sent)
    raise InvalidRequest(f"no call {call!r} waits. Pending: {[row['call'] for row in rows]}")


def token_for(id: str, row: Json, decision: VerbName, sent: Json) -> str:
    """A token for a decision on what `pending` shows, with the key in PERDURE_KEY."""
    from perdure.contracts import args_digest
    from perdure.tokens import KEY_VARIABLE, make_token, read_json

    digest = row["digest"]
    if decision == "complete":
        digest = args_digest({name: sent[name] for name in ("result", "error") if name in sent})
    elif sent.get("args") is not None:
        digest = args_digest(sent["args"])
    return make_token(read_json(KEY_VARIABLE), workflow_id=id, call=row["call"], decision=decision, digest=digest)


def key(
    name: Annotated[str, typer.Argument(help="Whose key it is; approvers are named so.")],
    file: Annotated[Path, typer.Argument(help="Where the private key goes. Must not exist.")],
    group: Annotated[list[str] | None, typer.Option(help="A group of the person. May be repeated.")] = None,
) -> None:
    """Make a person's key. Prints the public part, which belongs into the file that PERDURE_APPROVER_KEYS names."""
    with one_line_errors():
        from perdure.tokens import new_key

        private, public = new_key(name)
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise typer.BadParameter(f"{file}: {error.strerror}") from None
        with os.fdopen(descriptor, "w") as out:
            out.write(json.dumps(private) + "\n")
    print(f"{file} holds the private key of {name}; keep it secret", file=sys.stderr)
    print(json.dumps(public | ({"groups": group} if group else {})))
